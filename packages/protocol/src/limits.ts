/**
 * Every number that both sides must know. Sizes are in bytes and end in `_BYTES`, times are in milliseconds
 * and end in `_MS`, text lengths are in UTF-16 code units and end in `_CHARS`.
 */

/** Longest Unix socket path: `sun_path` of unix(7) is 108 bytes with its closing NUL. */
export const SOCKET_PATH_BYTES = 107

/** Largest hello, and largest body of any other small worker message. */
export const WORKER_MESSAGE_BYTES = 64 * 1024

/** Largest turn that a host hands to a sealed worker. */
export const SEALED_TURN_BYTES = 256 * 1024

/** Largest result that a sealed worker may post. */
export const SEALED_RESULT_BYTES = 1024 * 1024

/** Longest message text of a turn. */
export const TURN_TEXT_CHARS = 32_000

/** Longest speaker id and speaker name. */
export const SPEAKER_CHARS = 256

/** Longest answer of a turn. */
export const REPLY_TEXT_CHARS = 100_000

/** Largest request body on `/model`, `/tools/*` and `/mcp/*` of a sealed worker. */
export const SEALED_CALL_BODY_BYTES = 256 * 1024

/** Largest answer on `/model`, `/tools/*` and `/mcp/*` of a sealed worker. */
export const SEALED_CALL_ANSWER_BYTES = 1024 * 1024

/** How long one call of a sealed worker may take on the host. */
export const SEALED_CALL_MS = 60_000

/** How long a worker waits for an answer: longer than {@link SEALED_CALL_MS}, so that the host's refusal arrives. */
export const WORKER_CALL_TIMEOUT_MS = 65_000

/** How long the host holds a poll for the next turn before it answers 408. */
export const NEXT_POLL_MS = 45_000

/** A turn that is not acknowledged within this time is delivered again on the next poll. */
export const ACK_LEASE_MS = 2_000

/** Most messages in one model call. */
export const MODEL_MESSAGES = 128

/** Most tools in one model call. */
export const MODEL_TOOLS = 128

/** Most tool calls in one assistant message. */
export const MODEL_TOOL_CALLS = 8

/** Longest id of a tool call. */
export const TOOL_CALL_ID_CHARS = 128

/** Deepest nesting of any JSON that a guest sends or receives. */
export const JSON_DEPTH = 64

/** All tool descriptions of a turn together, as JSON. */
export const TOOL_SPECS_BYTES = 32 * 1024

/** The operator's prompt, as a JSON string. */
export const PROMPT_BYTES = 8 * 1024

/** Time before a turn's hard deadline at which a worker ends by itself and says so. */
export const SOFT_DEADLINE_MS = 10_000
