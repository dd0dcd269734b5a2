//! Many commands, at once and one after the other.

use std::fs;

use futures_util::future::join_all;

use super::scene::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sixty_four_at_once_all_end_right() {
    let scene = Scene::new();
    let processes = scene.open().await;
    let codes = join_all((0..64).map(|code| {
        let (scene, processes) = (&scene, &processes);
        async move {
            let script = format!("echo {code}; exit {code}");
            let mut process = scene.start(processes, shell(&script)).await;
            let record = record(&mut process).await;
            let text = read(&mut process.spool, OutputStream::Stdout);
            assert_eq!(text, format!("{code}\n"));
            record.status
        }
    }));
    let expected: Vec<_> = (0..64).map(ExitStatus::Code).collect();
    assert_eq!(codes.await, expected);
}

#[tokio::test]
async fn three_hundred_leave_no_descriptor_no_zombie_and_no_file() {
    let scene = Scene::new();
    let processes = scene.open().await;
    // What is made once for all is there before the count.
    run_one(&scene, &processes).await;
    until_idle(&scene).await;
    let before = descriptors();
    for _ in 0..300 {
        run_one(&scene, &processes).await;
    }
    until_idle(&scene).await;
    // The pool opens and closes some of its own meanwhile; a leak would be of hundreds.
    while descriptors() > before + 20 {
        tokio::task::yield_now().await;
    }
    while zombies() > 0 {
        tokio::task::yield_now().await;
    }
}

async fn run_one(scene: &Scene, processes: &Processes) {
    let mut process = scene.start(processes, argv(&["echo", "x"])).await;
    assert_eq!(record(&mut process).await.status, ExitStatus::Code(0));
    assert_eq!(read(&mut process.spool, OutputStream::Stdout), "x\n");
    process.spool.forget();
}

/// Waits until only the one supervisor that waits is left.
async fn until_idle(scene: &Scene) {
    while fs::read_dir(scene.root()).expect("a folder").count() > 1 {
        tokio::task::yield_now().await;
    }
}

fn descriptors() -> usize {
    fs::read_dir("/proc/self/fd").expect("a list").count()
}

/// Children of this process that have ended and were not collected.
fn zombies() -> usize {
    let own = std::process::id().to_string();
    let is_ours = |entry: &fs::DirEntry| {
        let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        let mut fields = stat
            .rsplit_once(") ")
            .map_or("", |(_, rest)| rest)
            .split(' ');
        fields.next() == Some("Z") && fields.next() == Some(own.as_str())
    };
    let all = fs::read_dir("/proc").expect("a list").flatten();
    all.filter(is_ours).count()
}
