export { openPiLayout, type PiLayout, type PiLayoutOptions } from './pi-layout.ts'
export { type PiOffer, type PiPolicy, type PiPolicyOptions, resolvePiPolicy } from './pi-policy.ts'
export type { PiBoundTurn, PiBrokerPort, PiDeskTurn, PiRuntimePorts } from './pi-ports.ts'
export { PiRuntime } from './pi-runtime.ts'
export {
  resolveTurnPolicy,
  type TurnPolicy,
  type TurnPolicyOptions,
} from './runtime-options.ts'
export { SealedRuntime, type SealedRuntimePorts, type TurnReply } from './sealed-runtime.ts'
export { CleanupFailed } from './turn-failure.ts'
export type { FailureCategory, TurnEvent, TurnState } from './turn-state.ts'
export type { SeatTaker, TurnParts, WorkerSeat } from './worker-seat.ts'
export {
  openWorkspaceLayout,
  type PreparedWorker,
  type WorkspaceLayout,
  type WorkspaceLayoutOptions,
} from './workspace-layout.ts'
