export { canary, encodingsOf, findSecret } from './canary.ts'
export { dockerGate, dockerSocket } from './docker-gate.ts'
export { type Forwarder, openForwarder } from './forwarder.ts'
export { soundPosture } from './posture.ts'
export { Guest, type GuestAnswer, type GuestRequest } from './raw-guest.ts'
export {
  chatText,
  chatToolCalls,
  type ScriptedUpstream,
  type SeenRequest,
  scriptedUpstream,
  type UpstreamScript,
} from './scripted-upstream.ts'
export { sourceFlags } from './source-flags.ts'
export { tempDir } from './temp-dir.ts'
