export { canary, encodingsOf, findSecret } from './canary.ts'
export { dockerGate, dockerSocket } from './docker-gate.ts'
export {
  chatText,
  chatToolCalls,
  type ScriptedUpstream,
  type SeenRequest,
  scriptedUpstream,
  type UpstreamScript,
} from './scripted-upstream.ts'
export { tempDir } from './temp-dir.ts'
