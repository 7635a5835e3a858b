export { DelegationError } from './delegation-error.ts'
export type {
  DelegationJob,
  DelegationOutcome,
  DelegationRequest,
  DelegationScope,
  DelegatorOptions,
} from './delegator-options.ts'
export { ScopedSandboxDelegator } from './scoped-delegator.ts'
