//! The table of languages.

/// The way to colour a language.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    /// By the words, strings and comments of this table.
    Words,
    /// The way of HTML and XML.
    Markup,
    /// By the first letters of lines.
    Diff,
    /// By the first letters of lines.
    Markdown,
}

/// A kind of string.
#[derive(Clone, Copy)]
pub(super) struct Text {
    pub(super) open: &'static str,
    pub(super) close: &'static str,
    /// True if a backslash takes the meaning from the next letter.
    pub(super) has_escapes: bool,
    /// True if it may have several lines.
    pub(super) has_lines: bool,
}

/// The properties of a language.
pub(super) struct Language {
    pub(super) name: &'static str,
    /// Other names, extensions of files and whole names of files; in small letters.
    pub(super) aliases: &'static str,
    pub(super) kind: Kind,
    /// With a space between two.
    pub(super) keywords: &'static str,
    /// True if keywords may be in capitals.
    pub(super) any_case: bool,
    pub(super) line_comments: &'static [&'static str],
    pub(super) block_comments: &'static [(&'static str, &'static str)],
    /// Strings; the longer sign stands first.
    pub(super) texts: &'static [Text],
    /// Letters that belong to words, besides alphanumeric ones and `_`.
    pub(super) word_letters: &'static str,
    /// The sign behind a key.
    pub(super) key_sign: Option<char>,
    /// True if words with a capital are types.
    pub(super) has_types: bool,
    /// True if `'a` may be a lifetime, and `a!` a macro.
    pub(super) has_lifetimes: bool,
    /// True if there are strings such as `r#"…"#`.
    pub(super) has_raw_strings: bool,
    /// True if `#word` at the beginning of a line is for the compiler.
    pub(super) has_directives: bool,
    /// True if `[name]` at the beginning of a line names a section.
    pub(super) has_sections: bool,
}

const PLAIN: Language = Language {
    name: "",
    aliases: "",
    kind: Kind::Words,
    keywords: "",
    any_case: false,
    line_comments: &[],
    block_comments: &[],
    texts: &[],
    word_letters: "",
    key_sign: None,
    has_types: false,
    has_lifetimes: false,
    has_raw_strings: false,
    has_directives: false,
    has_sections: false,
};

const fn text(open: &'static str, close: &'static str) -> Text {
    Text {
        open,
        close,
        has_escapes: true,
        has_lines: false,
    }
}

const fn lines(sign: &'static str) -> Text {
    Text {
        open: sign,
        close: sign,
        has_escapes: true,
        has_lines: true,
    }
}

const fn raw(open: &'static str, close: &'static str) -> Text {
    Text {
        open,
        close,
        has_escapes: false,
        has_lines: true,
    }
}

const DOUBLE: Text = text("\"", "\"");
const SINGLE: Text = text("'", "'");
const TRIPLE: Text = lines("\"\"\"");

const TEXTS: &[Text] = &[DOUBLE, SINGLE];
const LINES_TEXTS: &[Text] = &[lines("\"")];
const LINES_QUOTES: &[Text] = &[lines("\""), lines("'")];
const TRIPLE_TEXTS: &[Text] = &[TRIPLE, DOUBLE, SINGLE];
const PYTHON_TEXTS: &[Text] = &[TRIPLE, lines("'''"), DOUBLE, SINGLE];
const SCRIPT_TEXTS: &[Text] = &[DOUBLE, SINGLE, lines("`")];
const CPP_TEXTS: &[Text] = &[raw("R\"(", ")\""), DOUBLE, SINGLE];
const CSHARP_TEXTS: &[Text] = &[TRIPLE, raw("@\"", "\""), DOUBLE, SINGLE];
const SHELL_TEXTS: &[Text] = &[lines("\""), raw("'", "'")];
const SQL_TEXTS: &[Text] = &[raw("'", "'"), raw("\"", "\"")];
const YAML_TEXTS: &[Text] = &[
    DOUBLE,
    Text {
        has_escapes: false,
        ..SINGLE
    },
];
const TOML_TEXTS: &[Text] = &[
    TRIPLE,
    raw("'''", "'''"),
    DOUBLE,
    Text {
        has_escapes: false,
        ..SINGLE
    },
];
const LUA_TEXTS: &[Text] = &[raw("[[", "]]"), DOUBLE, SINGLE];

/// The languages that have colours.
pub(super) const LANGUAGES: &[Language] = &[
    Language {
        name: "rust",
        aliases: "rs",
        keywords: "as async await break const continue crate dyn else enum extern fn for if impl in \
            let loop match mod move mut pub ref return self Self static struct super trait \
            type union unsafe use where while",
        line_comments: &["//"],
        block_comments: &[("/*", "*/")],
        texts: LINES_TEXTS,
        has_types: true,
        has_lifetimes: true,
        has_raw_strings: true,
        ..PLAIN
    },
    Language {
        name: "python",
        aliases: "py pyi pyw python3",
        keywords: "and as assert async await break case class continue def del elif else except \
            finally for from global if import in is lambda match nonlocal not or pass raise \
            return self try while with yield",
        line_comments: &["#"],
        texts: PYTHON_TEXTS,
        has_types: true,
        ..PLAIN
    },
    Language {
        name: "javascript",
        aliases: "js jsx mjs cjs node",
        keywords: "async await break case catch class const continue debugger default delete do \
            else export extends finally for from function get if import in instanceof let \
            new of return set static super switch this throw try typeof var void while with \
            yield",
        line_comments: &["//"],
        block_comments: &[("/*", "*/")],
        texts: SCRIPT_TEXTS,
        has_types: true,
        word_letters: "$",
        ..PLAIN
    },
    Language {
        name: "typescript",
        aliases: "ts tsx mts cts",
        keywords: "abstract any as async await boolean break case catch class const continue \
            declare default delete do else enum export extends finally for from function get \
            if implements import in infer instanceof interface is keyof let namespace never \
            new number of override private protected public readonly return satisfies set \
            static string super switch this throw try type typeof unknown var void while \
            yield",
        line_comments: &["//"],
        block_comments: &[("/*", "*/")],
        texts: SCRIPT_TEXTS,
        has_types: true,
        word_letters: "$",
        ..PLAIN
    },
    Language {
        name: "go",
        aliases: "golang",
        keywords: "any bool break byte case chan const continue default defer else error \
            fallthrough float64 for func go goto if import int int64 interface map package \
            range return rune select string struct switch type uint var",
        line_comments: &["//"],
        block_comments: &[("/*", "*/")],
        texts: SCRIPT_TEXTS,
        has_types: true,
        ..PLAIN
    },
    Language {
        name: "java",
        aliases: "",
        keywords: "abstract assert boolean break byte case catch char class const continue default \
            do double else enum extends final finally float for if implements import \
            instanceof int interface long native new package permits private protected \
            public record return sealed short static super switch synchronized this throw \
            throws transient try var void volatile while yield",
        line_comments: &["//"],
        block_comments: &[("/*", "*/")],
        texts: TRIPLE_TEXTS,
        has_types: true,
        ..PLAIN
    },
    Language {
        name: "c",
        aliases: "h",
        keywords: "auto bool break case char const continue default do double else enum extern \
            float for goto if inline int long register restrict return short signed sizeof \
            size_t static struct switch typedef union unsigned void volatile while",
        line_comments: &["//"],
        block_comments: &[("/*", "*/")],
        texts: TEXTS,
        has_types: true,
        has_directives: true,
        ..PLAIN
    },
    Language {
        name: "cpp",
        aliases: "c++ cc cxx hpp hh hxx ino",
        keywords: "alignas auto bool break case catch char class co_await co_return co_yield \
            concept const consteval constexpr constinit continue decltype default delete do \
            double else enum explicit export extern final float for friend goto if inline \
            int long mutable namespace new noexcept operator override private protected \
            public requires return short signed sizeof static static_assert static_cast \
            struct switch template this throw try typedef typename union unsigned using \
            virtual void volatile while",
        line_comments: &["//"],
        block_comments: &[("/*", "*/")],
        texts: CPP_TEXTS,
        has_types: true,
        has_directives: true,
        ..PLAIN
    },
    Language {
        name: "csharp",
        aliases: "cs c#",
        keywords: "abstract as async await base bool break byte case catch char class const \
            continue decimal default delegate do double else enum event explicit extern \
            finally fixed float for foreach get if implicit in init int interface internal \
            is lock long namespace new object operator out override params private protected \
            public readonly record ref return sealed set short sizeof static string struct \
            switch this throw try typeof uint ulong unsafe using var virtual void volatile \
            while yield",
        line_comments: &["//"],
        block_comments: &[("/*", "*/")],
        texts: CSHARP_TEXTS,
        has_types: true,
        has_directives: true,
        ..PLAIN
    },
    Language {
        name: "ruby",
        aliases: "rb gemfile rakefile rake gemspec",
        keywords: "alias and begin break case class def defined? do else elsif end ensure extend \
            for if in include module next not or private protected public raise redo require \
            require_relative rescue retry return self super then undef unless until when \
            while yield attr_accessor attr_reader",
        line_comments: &["#"],
        texts: LINES_QUOTES,
        has_types: true,
        word_letters: "?",
        ..PLAIN
    },
    Language {
        name: "php",
        aliases: "phtml",
        keywords: "abstract and array as break callable case catch class clone const continue \
            declare default do echo else elseif empty enum extends final finally fn for \
            foreach function global goto if implements include include_once instanceof \
            interface isset list match namespace new or print private protected public \
            readonly require require_once return static switch this throw trait try unset \
            use var while xor yield",
        line_comments: &["//", "#"],
        block_comments: &[("/*", "*/")],
        texts: LINES_QUOTES,
        has_types: true,
        word_letters: "$",
        ..PLAIN
    },
    Language {
        name: "swift",
        aliases: "",
        keywords: "actor as associatedtype async await break case catch class continue default \
            defer deinit do else enum extension fallthrough fileprivate for func guard if \
            import in init inout internal is let mutating nonisolated open operator override \
            private protocol public repeat return self Self some static struct subscript \
            super switch throw throws try typealias var weak where while",
        line_comments: &["//"],
        block_comments: &[("/*", "*/")],
        texts: TRIPLE_TEXTS,
        has_types: true,
        ..PLAIN
    },
    Language {
        name: "kotlin",
        aliases: "kt kts",
        keywords: "abstract as break by catch class companion const constructor continue data do \
            else enum final finally for fun if import in init inline interface internal is \
            lateinit object open operator out override package private protected public \
            return sealed super suspend this throw try typealias val var vararg when where \
            while",
        line_comments: &["//"],
        block_comments: &[("/*", "*/")],
        texts: TRIPLE_TEXTS,
        has_types: true,
        ..PLAIN
    },
    Language {
        name: "shell",
        aliases: "sh bash zsh ksh console shellscript .bashrc .zshrc .profile",
        keywords: "alias break case cd continue do done echo elif else esac eval exec exit export \
            fi for function if in local readonly return select set shift source then trap \
            unset until while",
        line_comments: &["#"],
        texts: SHELL_TEXTS,
        word_letters: "-",
        ..PLAIN
    },
    Language {
        name: "sql",
        aliases: "psql sqlite mysql postgresql",
        keywords: "add all alter and any as asc begin between by cascade case check column commit \
            constraint create cross database default delete desc distinct drop else end \
            except exists explain foreign from full function group having if in index inner \
            insert intersect into is join key left like limit not null offset on or order \
            outer over partition primary references returning right rollback select set \
            table then to transaction trigger truncate union unique update using values view \
            when where with bigint boolean char date decimal int integer json jsonb numeric \
            real serial text timestamp uuid varchar",
        line_comments: &["--"],
        block_comments: &[("/*", "*/")],
        texts: SQL_TEXTS,
        any_case: true,
        ..PLAIN
    },
    Language {
        name: "json",
        aliases: "jsonc json5 jsonl ipynb webmanifest",
        line_comments: &["//"],
        block_comments: &[("/*", "*/")],
        texts: TEXTS,
        key_sign: Some(':'),
        ..PLAIN
    },
    Language {
        name: "yaml",
        aliases: "yml",
        keywords: "yes no on off",
        line_comments: &["#"],
        texts: YAML_TEXTS,
        key_sign: Some(':'),
        word_letters: "-./$",
        ..PLAIN
    },
    Language {
        name: "toml",
        aliases: "cargo.lock poetry.lock",
        line_comments: &["#"],
        texts: TOML_TEXTS,
        key_sign: Some('='),
        has_sections: true,
        word_letters: "-.",
        ..PLAIN
    },
    Language {
        name: "ini",
        aliases: "cfg conf config properties env editorconfig gitconfig desktop service",
        line_comments: &["#", ";"],
        texts: TEXTS,
        key_sign: Some('='),
        has_sections: true,
        word_letters: "-./",
        ..PLAIN
    },
    Language {
        name: "html",
        aliases: "htm xml xhtml svg vue xsl xsd plist csproj",
        kind: Kind::Markup,
        ..PLAIN
    },
    Language {
        name: "css",
        aliases: "scss less sass",
        keywords: "important media import keyframes supports font-face include mixin",
        block_comments: &[("/*", "*/")],
        texts: TEXTS,
        key_sign: Some(':'),
        word_letters: "-",
        ..PLAIN
    },
    Language {
        name: "markdown",
        aliases: "md mdx mkd",
        kind: Kind::Markdown,
        ..PLAIN
    },
    Language {
        name: "dockerfile",
        aliases: "docker containerfile",
        keywords: "add arg as cmd copy entrypoint env expose from healthcheck label maintainer \
            onbuild run shell stopsignal user volume workdir",
        line_comments: &["#"],
        texts: TEXTS,
        any_case: true,
        word_letters: "-./",
        ..PLAIN
    },
    Language {
        name: "makefile",
        aliases: "make mk gnumakefile justfile",
        keywords: "define else endef endif export ifdef ifeq ifndef ifneq include override unexport \
            vpath",
        line_comments: &["#"],
        texts: TEXTS,
        key_sign: Some(':'),
        word_letters: "-./%$",
        ..PLAIN
    },
    Language {
        name: "lua",
        aliases: "luau",
        keywords: "and break do else elseif end for function goto if in local not or repeat return \
            self then until while",
        line_comments: &["--"],
        block_comments: &[("--[[", "]]")],
        texts: LUA_TEXTS,
        has_types: true,
        ..PLAIN
    },
    Language {
        name: "haskell",
        aliases: "hs lhs",
        keywords: "as case class data default deriving do else family forall foreign hiding if \
            import in infix infixl infixr instance let module newtype of qualified then type \
            where",
        line_comments: &["--"],
        block_comments: &[("{-", "-}")],
        texts: TEXTS,
        has_types: true,
        word_letters: "'",
        ..PLAIN
    },
    Language {
        name: "scala",
        aliases: "sc sbt",
        keywords: "abstract as case catch class def derives do else end enum export extends \
            extension final finally for given if implicit import in inline lazy match new \
            object opaque open override package private protected return sealed super then \
            this throw trait transparent try type using val var while with yield",
        line_comments: &["//"],
        block_comments: &[("/*", "*/")],
        texts: TRIPLE_TEXTS,
        has_types: true,
        ..PLAIN
    },
    Language {
        name: "diff",
        aliases: "patch",
        kind: Kind::Diff,
        ..PLAIN
    },
];
