export { DelegationError } from './delegation-error.ts'
export type {
  DelegationJob,
  DelegationOutcome,
  DelegationRequest,
  DelegationScope,
  DelegatorOptions,
} from './delegator-options.ts'
export { ResearchError } from './research-error.ts'
export type { FetchedPage, ResearchOptions } from './research-options.ts'
export type { ResearchSdk, SdkModelRuntime, SdkSession } from './research-sdk.ts'
export { SandboxResearchWorker } from './research-worker.ts'
export { ScopedSandboxDelegator } from './scoped-delegator.ts'
