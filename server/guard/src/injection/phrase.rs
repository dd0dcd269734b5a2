//! The words that give a model instructions, and the likelihood of each that it addresses the model.

use shared_types::event::FindingCategory::{
    self, Concealment, Exfiltration, Frame, HiddenText, Override, Role,
};

/// A row of the table.
pub(super) struct Phrase {
    /// The kind of instruction.
    pub(super) category: FindingCategory,
    /// The likelihood that the phrase addresses the model, from 0 to 100.
    pub(super) score: u8,
    /// Finds it. The group is what is found.
    pub(super) pattern: &'static str,
}

const fn phrase(category: FindingCategory, score: u8, pattern: &'static str) -> Phrase {
    Phrase {
        category,
        score,
        pattern,
    }
}

/// The phrases. An earlier one wins at the same place.
pub(super) const PHRASES: &[Phrase] = &[
    phrase(
        HiddenText,
        80,
        r"(<!--[ \t\r\n]{0,16}(?i-u:(?:(?:ai|llm|assistant|agent|model)s?[:,]|you (?:must|should|are)|ignore |disregard |please (?:run|send|ignore)|important instructions?))[ -,.-~]{0,200})",
    ),
    phrase(
        Override,
        90,
        r"(?i-u:\b((?:ignore|disregard|forget|override|bypass)[ \n]{1,2}(?:(?:all|any|the|your|of|these|everything)[ \n]{1,2}){0,3}(?:previous|prior|above|earlier|preceding|former|existing|original|system)[ \n]{1,2}(?:system )?(?:instructions?|prompts?|directions|rules|guidelines|directives|orders|messages?)\b))",
    ),
    phrase(
        Override,
        85,
        r"(?i-u:\b((?:ignore|disregard|forget) (?:all |everything )(?:your |of your |the |you were told |instructions )(?:instructions|rules|guidelines|training|before)))",
    ),
    phrase(
        Override,
        75,
        r"(?i-u:\b((?:your|the) new (?:instructions|task|role|objective|goal) (?:are|is)(?: now)?\b))",
    ),
    phrase(
        Override,
        70,
        r"(?i-u:\b(you are (?:now|no longer) (?:a |an |in |bound|restricted|dan\b|the )(?:developer mode|jailbroken|unrestricted|by your|assistant|dan\b|evil|root)?))",
    ),
    phrase(
        Override,
        70,
        r"(?i-u:\b((?:attention,?|(?:note|message|instructions?) (?:to|for)) (?:the |any |all )?(?:ai|llm|language model)(?: agent| assistant| model)?s?[:,.]))",
    ),
    phrase(
        Role,
        80,
        r"(<\|(?:im_start\|>|start_header_id\|>)(?:system|user|assistant|tool)\b)",
    ),
    phrase(Role, 80, r"(<<SYS>>|\[INST\]|<\|system\|>)"),
    phrase(
        Role,
        75,
        r"(?m-u:^[ \t]{0,8}(?:#{1,3} )?((?i-u:\[system(?: message| prompt)?\]|\(system\)|system(?: message| prompt)?)[:]?[ \t]{1,4}(?i-u:you (?:must|should|are|will|have)|ignore|disregard|new instructions|the user has)\b))",
    ),
    phrase(Role, 30, r"(?m-u:^(\[system\]))"),
    phrase(
        Frame,
        80,
        r"(</?(?:function_calls?|tool_calls?|invoke name=|antml:invoke|function_results?|tool_result|system-reminder)[^>\n]{0,80}>)",
    ),
    phrase(Frame, 85, r"(?m-u:^[ \t]{0,8}[\[(<]?(From Gantry[:,\])>]))"),
    phrase(
        Frame,
        75,
        r"(?m-u:^[ \t]{0,8}(\[the user (?:says|approved|had this run|asks|wants|allows)[ -Z^-~]{0,80}\]?))",
    ),
    phrase(
        Concealment,
        85,
        r"(?i-u:\b((?:do not|don't|never|without) (?:tell|telling|inform|informing|mention(?:ing)?(?: this| it)? to|reveal(?:ing)?(?: this| it)? to|alert|alerting|notify|notifying|show(?:ing)?(?: this| it)? to|ask|asking) the (?:user|human|person|operator|owner)(?: (?:about|of|that|first|anything)|[.,!;\n]|$)))",
    ),
    phrase(
        Concealment,
        75,
        r"(?i-u:\b((?:keep|hide) (?:this|it|that|these)(?: instructions?| steps?| action)? (?:secret|hidden|a secret)? ?from the (?:user|human|operator)))",
    ),
    phrase(
        Exfiltration,
        85,
        r"(?i-u:!\[[ -Z^-~]{0,80}\]\((https?://[!-'*-~]{1,200}(?:\{|\$|%7b|<)(?:data|secret|token|key|content|conversation|history|env|password|api)))",
    ),
    phrase(
        Exfiltration,
        85,
        r"(?i-u:\b((?:send|post|upload|forward|exfiltrate|email|transmit|leak|append) (?:me |all |the |your |any |this |of ){0,3}(?:(?:contents? of|environment|env|api|ssh|private|secret|entire|full|whole|conversation|system) ?){1,3}(?:variables|keys?|history|files?|conversation|prompt|tokens?|secrets?|credentials|~/[!-~]{1,64}|\.env|/etc/[!-~]{1,64}) (?:to|as|in) (?:https?://|the (?:url|address|following)|[a-z0-9._-]{1,64}@)))",
    ),
    phrase(
        Exfiltration,
        75,
        r"(?i-u:\b((?:cat|base64|printenv|env)\b[ -{}~]{0,80}(?:\.ssh/id_|\.aws/credentials|\.env\b|/etc/shadow|printenv)[ -{}~]{0,40}\| ?(?:base64 ?(?:-w ?0 ?)?\| ?)?(?:curl|wget|nc)\b))",
    ),
];
