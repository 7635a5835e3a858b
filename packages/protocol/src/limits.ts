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

/** Largest turn that a host hands to a Pi worker: its images are in it, as base64. */
export const PI_TURN_BYTES = 96 * 1024 * 1024

/** Largest result that a Pi worker may post: its reply files are in it, as base64. */
export const PI_RESULT_BYTES = 72 * 1024 * 1024

/** Longest message text of a Pi turn, and longest memory block and operator's prompt. */
export const PI_TEXT_CHARS = 100_000

/** Longest error text of a Pi turn that failed, and of a tool that failed. */
export const PI_ERROR_CHARS = 10_000

/** Longest text of a tool's answer to a Pi worker. */
export const PI_TOOL_TEXT_CHARS = 1_000_000

/** Largest request body of a Pi worker's model call or tool call. */
export const PI_CALL_BODY_BYTES = 32 * 1024 * 1024

/** Largest answer of a tool to a Pi worker, and of a model call that is not streamed. */
export const PI_CALL_ANSWER_BYTES = 32 * 1024 * 1024

/** Largest streamed answer of a model call. */
export const PI_STREAM_BYTES = 256 * 1024 * 1024

/** Largest message to an MCP server, and largest answer. */
export const PI_MCP_BYTES = 4 * 1024 * 1024

/** Largest request for a compaction. */
export const PI_COMPACTION_BYTES = 96 * 1024 * 1024

/** Most characters of a summary that a host's compactor made. */
export const PI_SUMMARY_CHARS = 200_000

/** Most host tools of a Pi worker, and most MCP servers. */
export const PI_TOOLS = 128

/** Longest piece of text in one progress message. */
export const PI_PROGRESS_CHARS = 8_192

/** A worker posts progress no more often than this: lost pieces do not matter, since the result is the truth. */
export const PI_PROGRESS_MS = 250

/** A Pi worker that works on a turn sends a heartbeat this often. A held poll is a sign of life by itself. */
export const PI_HEARTBEAT_MS = 10_000

/** A Pi worker without a sign of life for this long is no longer ready, and its turn fails. */
export const PI_SILENCE_MS = 60_000

/** A Pi worker asks for its next turn again no later than this after a poll that failed, so that a lost turn comes again in time. */
export const PI_POLL_RETRY_MS = 500

/** Most images of a message, and of a tool's answer. */
export const IMAGES = 8

/** Largest image, decoded. */
export const IMAGE_BYTES = 20 * 1024 * 1024

/** All images of a message together, decoded. */
export const IMAGES_TOTAL_BYTES = 64 * 1024 * 1024

/** Most attachments of a message. */
export const ATTACHMENTS = 20

/** Most reply files of a turn. */
export const REPLY_FILES = 10

/** Largest reply file, decoded. */
export const REPLY_FILE_BYTES = 10 * 1024 * 1024

/** All reply files of a turn together, decoded. */
export const REPLY_FILES_TOTAL_BYTES = 50 * 1024 * 1024

/** Longest file name. */
export const FILE_NAME_CHARS = 255

/** Largest job that a host hands to the worker of a precheck, and largest result that it may post. */
export const PRECHECK_MESSAGE_BYTES = 64 * 1024

/** Largest request body of an MCP call of a precheck. */
export const PRECHECK_CALL_BODY_BYTES = 64 * 1024

/** Longest script of a precheck. */
export const PRECHECK_SCRIPT_CHARS = 8_000

/** Longest text that a precheck that worked may hand in. */
export const PRECHECK_TEXT_CHARS = 32_000

/** Longest text about a precheck that failed. */
export const PRECHECK_ERROR_CHARS = 1_000

/** From here on a conversation is compacted, by the host's compactor where there is one. In tokens. */
export const COMPACTION_SOFT_TOKENS = 300_000

/** From here on a compaction is always the agent's own summary. In tokens. */
export const COMPACTION_HARD_TOKENS = 500_000

/** How far below a tier a compaction must come for that tier to count again. In tokens. */
export const COMPACTION_HEADROOM_TOKENS = 50_000
