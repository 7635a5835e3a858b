/**
 * What an operator's content module for Pi workers is written against. The module lies in the folder that
 * `sandbox-worker build --pi --content DIR` takes, as `index.mjs` (or `index.js`), and exports `workerContent`:
 *
 * ```js
 * export function workerContent(profile) {
 *   return { prompt: 'You are the bot of a sailing club.', skillsDir: 'skills', toolNames: ['read'] }
 * }
 * ```
 *
 * It runs inside the worker, with no network and no credentials. It may import its own files and Node's modules.
 */

/** An extension of the Pi agent: what `ExtensionFactory` of `@earendil-works/pi-coding-agent` describes. */
export type PiExtension = {
  load(pi: unknown): void | Promise<void>
}['load']

/** What the workers of one profile are made of. Everything may be left out. */
export interface WorkerContent {
  /**
   * Whose facts (context window, price, thinking) to take for a model that the agent does not know. Which model is
   * called is the host's choice alone.
   */
  readonly model?: { readonly provider: 'anthropic'; readonly id: string }
  /** The system prompt, unless the host sends one. */
  readonly prompt?: string
  /** A directory of skills, relative to the content folder: each a directory with a `SKILL.md`. */
  readonly skillsDir?: string
  /** Names of the host's tools to offer. Default: all of them. */
  readonly brokerTools?: readonly string[]
  /**
   * Names of further tools: those of `extensions`, and the agent's own, such as `read`, `bash`, `edit` and `write`,
   * which are off otherwise. They reach the workspace and nothing else.
   */
  readonly toolNames?: readonly string[]
  readonly extensions?: readonly PiExtension[]
}

/** What a contributed tool knows of the turn that called it. */
export interface ContributedToolContext {
  /** Who speaks. The name is the speaker's own choice: no proof of who somebody is. */
  readonly speaker: { readonly id: string; readonly name: string }
  /** Fires when the turn ends. */
  readonly signal?: AbortSignal
  /** Sends a file along with the answer. Throws for a file that is empty or over 10 MiB. */
  attachReplyFile(file: { readonly name: string; readonly data: Uint8Array }): void
}

/** A tool that runs inside the worker and may attach files to the answer. */
export interface ContributedTool {
  readonly name: string
  readonly description: string
  /** A JSON Schema object, such as typebox makes. */
  readonly parameters: object
  /** Answers the model with text. What it throws is told to the model by its message. */
  execute(input: Readonly<Record<string, unknown>>, context: ContributedToolContext): string | Promise<string>
}

/** What the worker lends to content. */
export interface ContentKit {
  /** The agent's SDK: the module `@earendil-works/pi-coding-agent` as it is in the worker. */
  readonly pi: Readonly<Record<string, unknown>>
  /**
   * Adds a file to the answer of the turn at hand and returns its name, which is like the given one. Throws when no
   * turn is at hand, and for a file that is empty or over 10 MiB.
   */
  saveToOutbox(name: string, bytes: Uint8Array): string
  /**
   * Makes an extension of tools that may attach files to the answer. Their names belong into `toolNames` as well, or
   * they stay off.
   */
  contributionExtension(tools: readonly ContributedTool[]): PiExtension
}

/** The export `workerContent` of a content module. Called once per profile. */
export type WorkerContentFunction = (
  profile: string,
  kit: ContentKit,
) => WorkerContent | Promise<WorkerContent>
