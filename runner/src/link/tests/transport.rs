//! What carries the next link, after one that was never welcomed.

use futures_util::future::LocalBoxFuture;

use super::*;

type Ending = LocalBoxFuture<'static, ()>;

#[tokio::test]
async fn where_calls_pass_and_the_stream_brings_nothing_the_next_link_is_a_websocket() {
    let ends: [fn(FakeLink) -> Ending; 3] = [
        |mut silent| Box::pin(async move { while silent.next().await.is_some() {} }),
        |link| Box::pin(link.end(Status::unavailable("no streams here"))),
        |cut| Box::pin(async move { drop(cut) }),
    ];
    for end in ends {
        let over = links_that_end(end).await;
        assert_eq!(over, [Transport::Grpc, Transport::WebSocket]);
    }
}

#[tokio::test]
async fn a_stream_that_brings_something_is_tried_again_even_if_it_is_cut_then() {
    let over = links_that_end(|mut link| {
        Box::pin(async move {
            link.challenge().await;
        })
    });
    assert_eq!(over.await, [Transport::Grpc, Transport::Grpc]);
}

/// What carries two links, one after another, that are never welcomed and end so.
async fn links_that_end(end: fn(FakeLink) -> Ending) -> [Transport; 2] {
    let mut server = FakeServer::any(1).await;
    let directory = tempfile::tempdir().expect("a directory");
    let mut link = link(directory.path(), &server, None).await;
    let mut over = [Transport::Grpc; 2];
    for over in &mut over {
        let mut progress = LinkProgress::default();
        let ends = async {
            let link = server.next_link().await;
            *over = link.over;
            end(link).await;
        };
        let (ended, ()) = tokio::join!(attempt(&mut link, &mut progress), ends);
        assert!(ended.is_err() && progress.welcomed.is_none());
    }
    over
}
