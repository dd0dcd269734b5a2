use proptest::prelude::*;

use super::*;

fn base() -> Url {
    Url::parse("https://example.org/docs/page.html?q=1").expect("a URL")
}

fn text(html: &str) -> String {
    of_html(html, &base()).text
}

#[test]
fn a_page_is_shown_with_its_headings_lists_code_tables_and_links() {
    let page = r#"<!doctype html><html><head><title>My &amp; Title</title><style>p{}</style>
<script>var x = "<p>no</p>";</script></head><body>
<h1>Hello <em>world</em></h1>
<p>Some <b>bold</b> text &amp; caf&eacute;
   <a href="/x?y=1">link</a> and <code>let x = 1;</code>.</p>
<ul><li>one<ul><li>inner</li></ul></li><li><p>two</p><p>more</p></li></ul>
<ol start="3"><li>first<li>second</ol>
<pre><code>
fn main() {
    <span>println</span>!("<b>hi</b>");

}
</code></pre>
<table><tr><th>a</th><th>b</th></tr><tr><td><p>1</p></td><td>2<br>3</td></tr></table>
<blockquote><p>quoted</p><p>twice</p></blockquote><hr>
<img src="i.png" alt="a picture"> line<br/>two
<!-- comment --><svg><title>no</title><path/></svg><select><option>no</select></body></html>"#;
    let document = of_html(page, &base());
    assert_eq!(document.title, "My & Title");
    assert_eq!(
        document.text,
        r#"# Hello *world*

Some **bold** text & café [link](https://example.org/x?y=1) and `let x = 1;`.

- one
  - inner
- two

  more

3. first
4. second

```
fn main() {
    println!("hi");

}
```

| a | b |
|---|---|
| 1 | 2 3 |

> quoted
>
> twice

---

![a picture] line
two"#
    );
}

#[test]
fn the_main_part_of_a_page_stands_for_all_of_it_unless_it_is_empty() {
    let page = "<nav>menu</nav><main><p>words</p></main><footer>end</footer>";
    assert_eq!(text(page), "words");
    assert_eq!(text("<p>a<main> </main><p>b"), "a\n\nb");
    assert_eq!(text("</main>a<main>b"), "a\n\nb");
    assert_eq!(text("<a href=x><main></a>é"), "é");
}

#[test]
fn links_are_absolute_and_only_those_that_lead_to_another_page() {
    for (html, expected) in [
        (
            "<a href=b.html>x</a>",
            "[x](https://example.org/docs/b.html)",
        ),
        (
            "<base href=/c/><a href=d>x</a>",
            "[x](https://example.org/c/d)",
        ),
        ("<a href='mailto:a@b.c'>x</a>", "[x](mailto:a@b.c)"),
        ("<a href='#top'>x</a>", "x"),
        ("<a href='javascript:alert(1)'>x</a>", "x"),
        ("<a href='data:text/html,x'>x</a>", "x"),
        ("<a>x</a>", "x"),
        ("a <a href=b></a> b", "a b"),
        ("a <b> b </b> c<i>d</i>", "a **b** c*d*"),
        (
            "<a href=/b><div><h3>Card</h3></div></a>",
            "[### Card](https://example.org/b)",
        ),
        (
            "<b><a href=/b>x</b>y</a>",
            "**[x](https://example.org/b)**y",
        ),
    ] {
        assert_eq!(text(html), expected, "{html}");
    }
    let long = format!("<a href=/{}>x</a>", "y".repeat(MAX_LINK_BYTES));
    assert_eq!(text(&long), "x");
}

#[test]
fn a_table_that_only_arranges_the_page_keeps_its_lines() {
    let page = "<table><tr><td><table><tr><td>1.</td><td>one</td></tr><tr><td>2.</td><td>two</td></tr>\
                </table></td></tr></table>";
    let text = text(page);
    assert!(text.contains("| 1. | one |\n"), "{text}");
    assert!(text.contains("\n| 2. | two |"), "{text}");
}

#[test]
fn a_page_that_is_made_to_harm_costs_no_more_than_its_length() {
    const BYTES: usize = 256 * 1024;
    for part in [
        "<div>",
        "<ul><li>x",
        "<ol><li><blockquote>x",
        "<b id=1>x",
        "<a href=a>x<p>",
        "<blockquote>x<br>",
        "<table><tr><td>x",
        "<td>",
        "<pre>x\n",
        "<svg>",
        "<",
        "&amp;",
        "</div></b></table></ul>",
        "<title>",
        "<main>x</main>",
        "<em></em>",
        "\n",
    ] {
        let text = text(&part.repeat(BYTES / part.len()));
        assert!(text.len() <= MAX_BYTES, "{part}: {} bytes", text.len());
    }
    let attributes: String = (0..BYTES / 8).map(|n| format!("a{n}=1 ")).collect();
    assert_eq!(text(&format!("<p {attributes}>x")), "x");
    let title = "é".repeat(BYTES);
    let document = of_html(&format!("<title>{title}</title>"), &base());
    assert!(document.title.len() <= MAX_TITLE_BYTES);
}

#[test]
fn a_text_that_is_full_takes_no_more() {
    let mut lines = BoundedText::new(10);
    for word in ["one ", "two ", "three ", "4"] {
        lines.text(word);
    }
    assert_eq!(lines.finish().trim_end(), "one two");
}

proptest! {
    #[test]
    fn any_soup_of_tags_is_taken(parts in prop::collection::vec(prop::sample::select(vec![
        "<p>", "</p>", "<b>", "</b>", "<a href=x>", "</a>", "<ul>", "</ul>", "<ol>", "</ol>", "<li>", "</li>",
        "<pre>", "</pre>", "<table>", "</table>", "<tr>", "</tr>", "<td>", "</td>", "<blockquote>", "</blockquote>",
        "<main>", "</main>", "<svg>", "</svg>", "<script>", "</script>", "<title>", "</title>", "<h2>", "</h2>",
        "<code>", "</code>", "<br>", "<hr>", "é", "x y", "\n", " ", "<img alt=é>",
    ]), 0..60)) {
        let html = parts.concat();
        let text = text(&html);
        prop_assert!(text.len() <= html.len() * 100 + 1);
    }
}
