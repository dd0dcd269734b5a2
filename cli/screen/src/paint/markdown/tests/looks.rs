//! One rich document at three widths.

use super::*;

#[test]
fn a_rich_document_at_60_columns() {
    insta::assert_snapshot!(shown(&markdown(RICH, 60)), @r##"
    <bold underlined>Plan for the </><bold italic underlined>migration</>

    We move the table <cyan>sessions</> to a new layout, <bold>without</>
    <bold>downtime</>, and keep the old one until every runner has
    <struck>stopped</> drained. See <underlined>the design</>
    <dim>(https://example.org/design/42)</> or <underlined>https://example.org</>.

    <bold>Steps</>

    <dim>1. </>Write both layouts:

       <dim>◦ </>old rows stay readable, even while a runner that speaks
         the previous protocol is connected
       <dim>◦ </>new rows carry <cyan>epoch</>

    <dim>2. </>Copy in batches of 1,000 rows.

       A batch that fails is retried.

    <dim>3. </>Drop the old table.

    ☑ schema
    ☐ copy job with a name that is long enough that it has to be
      wrapped at sixty columns
      <dim>◦ </>nested, 日本語のテキストは単語の間に空白がないので、どこ
        でも改行できます。

    <dim>│ </><bold>Note:</> a quote that is long enough to be wrapped, because
    <dim>│ </>it goes on and on, with <cyan>code</> in it.
    <dim>│</>
    <dim>│ </><dim>│ </>Inner.

    <dim>###</> <bold>Code</>

      <dim italic>/// Copies one batch.</>
      <magenta>fn</> <blue>copy</>(rows: &[<cyan>Row</>], limit: usize) -> <cyan>Result</><u64, <cyan>Error</>>
      {
          <magenta>let</> text = <green>"a string that is long enough to be folded</>
      <green>at sixty columns"</>; <dim italic>// why</>
          <blue>Ok</>(<yellow>42</>)
      }

    <dim>┌────────┬──────┬──────────────────────────────────────────┐</>
    <dim>│ </><bold>Column</><dim> │ </><bold>Type</><dim> │ </>                                 <bold>Meaning</><dim> │</>
    <dim>├────────┼──────┼──────────────────────────────────────────┤</>
    <dim>│ </><cyan>id</>    <dim> │ </>text<dim> │ </>The id of the session, which begins with<dim> │</>
    <dim>│ </>      <dim> │ </>    <dim> │ </>                 <cyan>ses_</> and never changes.<dim> │</>
    <dim>├────────┼──────┼──────────────────────────────────────────┤</>
    <dim>│ </>epoch <dim> │ </>int <dim> │ </>                     👩‍💻 Counts restarts.<dim> │</>
    <dim>└────────┴──────┴──────────────────────────────────────────┘</>

    <dim>────────────────────────────────────────────────────────────</>

    Hard
    break, <kbd>HTML</kbd> and [image: a picture].

    <details>
    <summary>More</summary>
    </details>

    [ref]: https://example.org
    "##);
}

#[test]
fn a_rich_document_at_80_columns() {
    insta::assert_snapshot!(painted(RICH, 80), @r##"
    Plan for the migration

    We move the table sessions to a new layout, without downtime, and keep the old
    one until every runner has stopped drained. See the design
    (https://example.org/design/42) or https://example.org.

    Steps

    1. Write both layouts:

       ◦ old rows stay readable, even while a runner that speaks the previous
         protocol is connected
       ◦ new rows carry epoch

    2. Copy in batches of 1,000 rows.

       A batch that fails is retried.

    3. Drop the old table.

    ☑ schema
    ☐ copy job with a name that is long enough that it has to be wrapped at sixty
      columns
      ◦ nested, 日本語のテキストは単語の間に空白がないので、どこでも改行できます。

    │ Note: a quote that is long enough to be wrapped, because it goes on and on,
    │ with code in it.
    │
    │ │ Inner.

    ### Code

      /// Copies one batch.
      fn copy(rows: &[Row], limit: usize) -> Result<u64, Error> {
          let text = "a string that is long enough to be folded at sixty columns"; /
      / why
          Ok(42)
      }

    ┌────────┬──────┬──────────────────────────────────────────────────────────────┐
    │ Column │ Type │                                                      Meaning │
    ├────────┼──────┼──────────────────────────────────────────────────────────────┤
    │ id     │ text │      The id of the session, which begins with ses_ and never │
    │        │      │                                                     changes. │
    ├────────┼──────┼──────────────────────────────────────────────────────────────┤
    │ epoch  │ int  │                                          👩‍💻 Counts restarts. │
    └────────┴──────┴──────────────────────────────────────────────────────────────┘

    ────────────────────────────────────────────────────────────────────────────────

    Hard
    break, <kbd>HTML</kbd> and [image: a picture].

    <details>
    <summary>More</summary>
    </details>

    [ref]: https://example.org
    "##);
}

#[test]
fn a_rich_document_at_120_columns() {
    insta::assert_snapshot!(painted(RICH, 120), @r##"
    Plan for the migration

    We move the table sessions to a new layout, without downtime, and keep the old one until every runner has stopped
    drained. See the design (https://example.org/design/42) or https://example.org.

    Steps

    1. Write both layouts:

       ◦ old rows stay readable, even while a runner that speaks the previous protocol is connected
       ◦ new rows carry epoch

    2. Copy in batches of 1,000 rows.

       A batch that fails is retried.

    3. Drop the old table.

    ☑ schema
    ☐ copy job with a name that is long enough that it has to be wrapped at sixty columns
      ◦ nested, 日本語のテキストは単語の間に空白がないので、どこでも改行できます。

    │ Note: a quote that is long enough to be wrapped, because it goes on and on, with code in it.
    │
    │ │ Inner.

    ### Code

      /// Copies one batch.
      fn copy(rows: &[Row], limit: usize) -> Result<u64, Error> {
          let text = "a string that is long enough to be folded at sixty columns"; // why
          Ok(42)
      }

    ┌────────┬──────┬──────────────────────────────────────────────────────────────────┐
    │ Column │ Type │                                                          Meaning │
    ├────────┼──────┼──────────────────────────────────────────────────────────────────┤
    │ id     │ text │ The id of the session, which begins with ses_ and never changes. │
    │ epoch  │ int  │                                              👩‍💻 Counts restarts. │
    └────────┴──────┴──────────────────────────────────────────────────────────────────┘

    ────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────

    Hard
    break, <kbd>HTML</kbd> and [image: a picture].

    <details>
    <summary>More</summary>
    </details>

    [ref]: https://example.org
    "##);
}
