export type { SandboxSpeaker } from '@sandbox/credential-scope'
export { type ChannelStoreOptions, SandboxChannelStore } from './channel/channel-store.ts'
export { isSandboxAddress } from './claim/address.ts'
export type { AdmissionOptions } from './claim/admission-limits.ts'
export { splitReply } from './claim/answer.ts'
export { type SandboxClaimParts, sandboxClaim } from './claim/sandbox-claim.ts'
export type {
  Actor,
  AnyInteraction,
  CommandContribution,
  CommandGuard,
  CommandInteraction,
  CommandModule,
  DiscordPort,
  SubcommandGroupJson,
  SubcommandJson,
} from './commands/command-contract.ts'
export {
  type SandboxCommandParts,
  type SandboxCommands,
  sandboxCommands,
} from './commands/sandbox-commands.ts'
export type { ExplainPayer, Payer } from './commands/status-words.ts'
export { SandboxRuntime, type SandboxStatus } from './defaults.ts'
export { AgentRunError, SandboxPluginError, type SandboxPluginErrorCode } from './errors.ts'
export type {
  AttachmentRef,
  BackgroundTurn,
  ChannelClaim,
  ChannelKey,
  ChannelQueuePort,
  ChatSurface,
  HostContext,
  HostEnv,
  HostLogger,
  HostService,
  HostServices,
  HostSurfaces,
  InboundMessage,
  OutboundReply,
  ReplyFile,
  ResolvedSpeaker,
  SandboxContribution,
  SandboxPlugin,
  ScheduledOutcome,
  ServiceKey,
  Tier,
  TurnAdmission,
} from './host-contract.ts'
export type { DriverInstall, SandboxOptions, SandboxRuntimeOptions } from './options.ts'
export { PiSandboxRuntime, type PiSandboxStatus } from './pi-defaults.ts'
export type { PiSandboxRuntimeOptions } from './pi-options.ts'
export { PI_SANDBOX, type PiSandboxOptions, type PiSandboxService, piSandbox } from './pi-plugin.ts'
export { SANDBOX, type SandboxService, sandbox } from './plugin.ts'
export type { FailureFacts, FailureWording } from './runtime/failure-words.ts'
export type { LastTurn } from './runtime/last-turns.ts'
export type { PiFailureCategory, PiTurnFailed } from './runtime/pi-failure.ts'
export type { PiProfile } from './runtime/pi-policy.ts'
export type { EffortJudge, ForgetMemory, MemoryBlock } from './runtime/pi-ports.ts'
export type { PiProgressUpdate } from './runtime/pi-progress.ts'
export type { PiStatus, PiTurnReply } from './runtime/pi-runtime.ts'
export type { PiAnswer, PiReplyFileData } from './runtime/pi-turn.ts'
export type { PiAttachment, PiTurnRequest } from './runtime/pi-turn-input.ts'
export type { SpendingScope } from './runtime/revocations.ts'
export type { TurnReply } from './runtime/sealed-runtime.ts'
export { CleanupFailed } from './runtime/turn-failure.ts'
export type { FailureCategory, TurnEvent, TurnState } from './runtime/turn-state.ts'
