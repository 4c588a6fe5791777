//! The Python classes of models that one of our providers can stand for.

/// Which of our providers stands for a class.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Family {
    /// `openai`.
    Chat,
    /// `anthropic`.
    Messages,
}

/// A class that one of our providers can stand for.
pub(super) struct Class {
    pub(super) name: &'static str,
    pub(super) family: Family,
    /// Where it goes unless it is told; none for the provider's own default.
    pub(super) base_url: Option<&'static str>,
    /// The variable with the key, unless it is told another.
    pub(super) key_variable: &'static str,
    /// Whether it sends `max_tokens` as `max_completion_tokens`.
    pub(super) renames_max_tokens: bool,
    /// Whether the reasoning of earlier replies goes back to the model.
    pub(super) replays_reasoning: bool,
}

const fn chat(name: &'static str, base_url: Option<&'static str>, key: &'static str) -> Class {
    Class {
        name,
        family: Family::Chat,
        base_url,
        key_variable: key,
        renames_max_tokens: false,
        replays_reasoning: false,
    }
}

const fn openai(name: &'static str, replays_reasoning: bool) -> Class {
    Class {
        renames_max_tokens: true,
        replays_reasoning,
        ..chat(name, None, "OPENAI_API_KEY")
    }
}

const fn messages(name: &'static str) -> Class {
    Class {
        name,
        family: Family::Messages,
        base_url: None,
        key_variable: "ANTHROPIC_API_KEY",
        renames_max_tokens: false,
        replays_reasoning: false,
    }
}

pub(super) const DEEPSEEK: &str = "https://api.deepseek.com/v1";

/// The classes that are known, with the addresses and variables that they have in their packages.
pub(super) const CLASSES: &[Class] = &[
    openai("langchain_openai:ChatOpenAI", false),
    openai("deerflow.models.patched_openai:PatchedChatOpenAI", true),
    openai("deerflow.models.patched_mimo:PatchedChatMiMo", true),
    openai("deerflow.models.patched_stepfun:PatchedChatStepFun", true),
    openai("deerflow.models.patched_minimax:PatchedChatMiniMax", true),
    openai("deerflow.models.vllm_provider:VllmChatModel", true),
    chat(
        "langchain_deepseek:ChatDeepSeek",
        Some(DEEPSEEK),
        "DEEPSEEK_API_KEY",
    ),
    Class {
        replays_reasoning: true,
        ..chat(
            "deerflow.models.patched_deepseek:PatchedChatDeepSeek",
            Some(DEEPSEEK),
            "DEEPSEEK_API_KEY",
        )
    },
    chat(
        "langchain_groq:ChatGroq",
        Some("https://api.groq.com/openai/v1"),
        "GROQ_API_KEY",
    ),
    chat(
        "langchain_xai:ChatXAI",
        Some("https://api.x.ai/v1"),
        "XAI_API_KEY",
    ),
    chat(
        "langchain_together:ChatTogether",
        Some("https://api.together.xyz/v1"),
        "TOGETHER_API_KEY",
    ),
    chat(
        "langchain_fireworks:ChatFireworks",
        Some("https://api.fireworks.ai/inference/v1"),
        "FIREWORKS_API_KEY",
    ),
    messages("langchain_anthropic:ChatAnthropic"),
    messages(CLAUDE),
];

pub(super) const CLAUDE: &str = "deerflow.models.claude_provider:ClaudeChatModel";
pub(super) const MINIMAX: &str = "deerflow.models.patched_minimax:PatchedChatMiniMax";

/// Names of the classes that `use` may have.
pub fn class_names() -> impl Iterator<Item = &'static str> {
    CLASSES.iter().map(|class| class.name)
}
