export { precheckScriptRunner } from './defaults.ts'
export {
  PRECHECKS,
  PrecheckError,
  type PrecheckPort,
  type PrecheckResult,
  type PrecheckScope,
  type PrecheckScriptContext,
  type PrecheckScriptRunner,
  type PrecheckTool,
} from './precheck-contract.ts'
export type { PrecheckRunnerOptions } from './runner-options.ts'
export type { SandboxPrecheckRunner } from './script-runner.ts'
