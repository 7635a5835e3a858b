import { limits } from '@sandbox/protocol'
import type { PrecheckTool } from './precheck-contract.ts'
import type { PrecheckPolicy } from './runner-options.ts'

/** PC-15: the contract of a script, and the tools that it may call, for the model that writes one. */
export function describePrechecks(
  { maxCalls, timeoutMs }: PrecheckPolicy,
  tools: readonly PrecheckTool[],
): string {
  return `A precheck script is a JavaScript module of at most ${limits.PRECHECK_SCRIPT_CHARS} characters. Its default export is a function, async if you like, that is called with { mcp, firedAt, timeZone, today, schedule }:
- firedAt is when it fires, as ISO 8601 text in UTC; timeZone an IANA name; today YYYY-MM-DD in that time zone; schedule { id, title }, both text.
- await mcp.call(server, tool, input) gives the text of a tool's result. await mcp.json(server, tool, input) gives its structured result, or its text read as JSON. Both throw when the call fails. At most ${maxCalls} calls, one after the other.
It returns { wake: false, note?: "text" }, or { wake: true, context: "text" } with at most ${limits.PRECHECK_TEXT_CHARS} characters: you are woken, and told the context. When it throws, you are woken and told the message.
It runs in a sealed container of its own: no network, no files, nothing is kept for the next time, 256 MiB of memory, ${timeoutMs / 1_000} s with the start. It may import modules of Node.js and no packages; what it logs is not shown to you.
${tools.length === 0 ? 'There is no tool that it may call.' : `It may call: ${tools.map(({ server, tool }) => `${server}/${tool}`).join(', ')}.`}`
}
