use std::collections::BTreeSet;

use shared_telemetry::{OTHER, server::MODEL_PROVIDERS};

use super::*;

fn written(toml: &str) -> Providers {
    toml::from_str(toml).expect("it has the form of providers")
}

fn built_in() -> Catalogue {
    Catalogue::built_in().expect("the file of the program is sound")
}

#[test]
fn the_file_of_the_program_has_the_providers_and_each_has_a_model_for_its_default() {
    let catalogue = built_in();
    let names: BTreeSet<&str> = catalogue.providers.keys().map(String::as_str).collect();
    let counted = MODEL_PROVIDERS.iter().filter(|name| **name != OTHER);
    let counted: BTreeSet<&str> = counted.copied().collect();
    assert_eq!(names, counted, "the metrics name the same providers");
    for name in names {
        let provider = catalogue.provider(name).expect(name);
        assert!(provider.base_url.starts_with("http"), "{name}");
        if !provider.models.is_empty() {
            assert!(provider.default.is_some(), "{name}");
        }
    }
}

#[test]
fn a_model_is_found_by_its_name_and_by_the_longest_beginning_of_it() {
    let catalogue = built_in()
        .with(written(
            "[mine]\nbase_url = \"http://127.0.0.1/v1\"\nnames = [\"gpt-oss-\"]\n",
        ))
        .expect("it is sound");
    let of = |model: &str| catalogue.provider_of(model).map(|it| it.name.as_str());
    assert_eq!(of("claude-of-tomorrow"), Some("anthropic"));
    assert_eq!(of("gpt-6.9"), Some("openai"));
    assert_eq!(of("gpt-oss-20b"), Some("mine"));
    assert_eq!(of("nothing-like-it"), None);
}

#[test]
fn a_file_replaces_single_keys_of_a_provider_and_of_a_model() {
    let prices = "[openai]\nbase_url = \"https://proxy.example/v1\"\n\
        [[openai.models]]\nname = \"gpt-x\"\nwindow = 1000\n";
    let catalogue = built_in().with(written(prices)).expect("it is sound");
    let price = "[[openai.models]]\nname = \"gpt-x\"\n\
        price = { input = 2.5, output = 10.0, date = \"2026-11-20\" }\n";
    let catalogue = catalogue.with(written(price)).expect("it is sound");
    let openai = catalogue.provider("openai").expect("it is there");
    assert_eq!(openai.base_url, "https://proxy.example/v1");
    assert_eq!(openai.key.as_deref(), Some("OPENAI_API_KEY"), "it stays");
    let profile = openai.profile("gpt-x");
    assert_eq!(profile.window, Some(1000), "it stays");
    let price = profile.price.expect("it was given");
    assert_eq!((price.input, price.cached), (2_500_000, 2_500_000));
    assert_eq!(price.output, 10_000_000);
    assert_eq!(openai.profile("gpt-unheard").price, None);
}

#[test]
fn values_that_cannot_be_are_refused_with_what_is_allowed() {
    let model = |rest: &str| format!("[[openai.models]]\nname = \"m\"\n{rest}\n");
    for (toml, words) in [
        (
            model("price = { input = -1.0, output = 1.0, date = \"2026-11-20\" }"),
            "from 0",
        ),
        (
            model("price = { input = nan, output = 1.0, date = \"2026-11-20\" }"),
            "from 0",
        ),
        (
            model("price = { input = 1.0, output = 1.0, date = \"today\" }"),
            "2026-11-20",
        ),
        (model("thinking = \"hard\""), "adaptive"),
        (model("tools = \"spoken\""), "native, text, or unknown"),
        ("[openai]\ntools = \"spoken\"\n".to_owned(), "native, text"),
        (
            "[openai]\nformat = \"telegraph\"\n".to_owned(),
            "openai-chat",
        ),
        ("[new]\nformat = \"openai-chat\"\n".to_owned(), "base_url"),
    ] {
        let error = built_in().with(written(&toml)).expect_err(&toml);
        assert!(error.to_string().contains(words), "{error}");
    }
}

#[test]
fn a_model_calls_tools_as_it_says_or_as_its_provider_does() {
    let toml = "[ollama]\ntools = \"text\"\n[[ollama.models]]\nname = \"able\"\ntools = \"native\"\n\
        [[ollama.models]]\nname = \"small\"\n";
    let catalogue = built_in().with(written(toml)).expect("it is sound");
    let of = |provider: &str, model: &str| {
        let provider = catalogue.provider(provider).expect("it is there");
        provider.profile(model).tools
    };
    assert_eq!(of("ollama", "able"), ToolCalls::Native);
    assert_eq!(of("ollama", "small"), ToolCalls::Text);
    assert_eq!(of("ollama", "unheard"), ToolCalls::Text);
    assert_eq!(of("openai", "gpt-unheard"), ToolCalls::Native);
    assert_eq!(of("openrouter", "unheard/of"), ToolCalls::Unknown);
    assert_eq!(of("vllm", "unheard"), ToolCalls::Unknown);
}
