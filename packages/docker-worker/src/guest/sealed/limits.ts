/**
 * The numbers of the sealed agent itself; what host and guest share stands in the protocol. Sizes are in bytes
 * of JSON text in UTF-8.
 */

/** Most model calls in one turn. */
export const MODEL_CALLS = 12

/** Largest model request. */
export const MODEL_REQUEST_BYTES = 192 * 1024

/** The user message: speaker and text. */
export const USER_MESSAGE_BYTES = 48 * 1024

/** One entry of the history. */
export const HISTORY_ENTRY_BYTES = 8 * 1024

/** Most entries in the history: 10 exchanges. */
export const HISTORY_ENTRIES = 20

/** The memory preview of the speaker, and that of the channel. */
export const MEMORY_PREVIEW_BYTES = 4 * 1024

/** What the model sees of one tool's result. */
export const TOOL_RESULT_BYTES = 4 * 1024

/** Longer arguments of a call are left out when the call is replayed to the model. */
export const REPLAYED_ARGUMENTS_BYTES = 2 * 1024

/** What the model sees of its own words between tool calls. */
export const INTERIM_TEXT_BYTES = 8 * 1024

/** Most memory entries of a channel, all speakers together. */
export const MEMORY_ENTRIES = 256

/** All memory of a channel. */
export const MEMORY_BYTES = 512 * 1024

/** Most memory entries that one speaker may have written: a quarter, so that one guest cannot fill them all. */
export const SPEAKER_MEMORY_ENTRIES = MEMORY_ENTRIES / 4

/** All memory that one speaker may have written. */
export const SPEAKER_MEMORY_BYTES = MEMORY_BYTES / 4

/** Longest key of a memory entry, in UTF-16 code units. */
export const MEMORY_KEY_CHARS = 128

/** Longest text of a memory entry, in UTF-16 code units. */
export const MEMORY_TEXT_CHARS = 2048
