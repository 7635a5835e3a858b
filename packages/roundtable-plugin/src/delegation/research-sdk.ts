/**
 * The part of the Pi SDK (`@earendil-works/pi-coding-agent` 1.6) that a research needs. The SDK is handed in, so that
 * nobody has to install it who has no use for it: `sdk: () => import('@earendil-works/pi-coding-agent')`.
 */
export interface ResearchSdk {
  readonly ModelRuntime: { create(options: never): Promise<SdkModelRuntime> }
  readonly SettingsManager: { inMemory(settings: never): unknown }
  readonly SessionManager: { inMemory(): unknown }
  readonly DefaultResourceLoader: new (options: never) => { reload(): Promise<void> }
  createAgentSession(options: never): Promise<{ readonly session: SdkSession }>
}

/** What the SDK knows of models. */
export interface SdkModelRuntime {
  setRuntimeApiKey(provider: string, key: string): Promise<void>
  getModel(provider: string, id: string): { readonly baseUrl: string } | undefined
}

/** One conversation of the agent. */
export interface SdkSession {
  readonly agent: { streamFunction: (model: never, context: never, options?: never) => unknown }
  readonly messages: readonly unknown[]
  prompt(text: string, options?: { readonly expandPromptTemplates?: boolean }): Promise<void>
  getActiveToolNames(): readonly string[]
  abort(): Promise<void>
  dispose(): void
}

/** A tool as the agent takes it. */
export interface SdkTool {
  readonly name: string
  readonly label: string
  readonly description: string
  readonly parameters: object
  execute(
    id: string,
    input: Record<string, unknown>,
    signal?: AbortSignal,
  ): Promise<{ readonly content: readonly { readonly type: 'text'; readonly text: string }[] }>
}
