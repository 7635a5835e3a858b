export { type ChannelStoreOptions, SandboxChannelStore } from './channel/channel-store.ts'
export { isSandboxAddress } from './claim/address.ts'
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
export { SandboxRuntime } from './defaults.ts'
export { SandboxPluginError, type SandboxPluginErrorCode } from './errors.ts'
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
export { SANDBOX, type SandboxService, sandbox } from './plugin.ts'
export type { TurnReply } from './runtime/sealed-runtime.ts'
export type { FailureCategory, TurnEvent, TurnState } from './runtime/turn-state.ts'
