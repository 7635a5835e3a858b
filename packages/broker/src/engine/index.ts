export type {
  ArrayRule,
  ClosedObject,
  FieldRule,
  HostRule,
  HostValue,
  NumberRule,
  ObjectRule,
  RequestFacts,
  RequestHost,
  RequestTable,
  RewriteOptions,
  RewrittenRequest,
  StringRule,
  ValueRule,
  VariantFields,
  Variants,
} from './body-table/request-table.ts'
export { rewriteRequest } from './body-table/rewrite-request.ts'
export { schemaRule } from './body-table/schema-table.ts'
export {
  amount,
  anyText,
  flag,
  hosts,
  listOf,
  MANY_MESSAGES,
  MANY_PARTS,
  MANY_TOOLS,
  objectOf,
  orNull,
  text,
  word,
} from './body-table/table-parts.ts'
export { BodyBudget, type BodyLease, type BodyShare, sharedBodyBudget } from './call/body-budget.ts'
export type { CallEvent, CallReason, CallUsage, ReceiptCall, ReceiptSink } from './call/call-event.ts'
export { CallRecord } from './call/call-record.ts'
export { type CallSignal, type CallSignalSources, linkCallSignal, raceSignal } from './call/call-signal.ts'
export { spendCredential } from './call/credential.ts'
export type { CallCredit, CreditAnswer, CreditCall } from './call/credit.ts'
export type { AnswerStream, BrokerAnswer, BrokerHandler, BrokerRequest } from './call/exchange.ts'
export type { FailureSink } from './call/failure-words.ts'
export { type ErrorShape, jsonBytes } from './call/guest-answer.ts'
export { type CallEngine, handleCall } from './call/handle-call.ts'
export { OwnedIds, type OwnedIdsOptions } from './call/owned-ids.ts'
export { PassedAnswer, type PassedStream } from './call/passed-answer.ts'
export { parseObject, type ReadBodyOptions, readBody } from './call/read-body.ts'
export { CallRefusal, type RefusalDetail } from './call/refusal.ts'
export { type HeadPolicy, type RequestHead, SEALED_HEADERS } from './call/request-head.ts'
export { reserveCredit } from './call/reserve-credit.ts'
export type { AdmittedCall, CallRoute, RouteTable, WorkerCall, WorkerRoute } from './call/route.ts'
export { type BucketOptions, CHEAP_CALLS, TokenBucket } from './call/token-bucket.ts'
export { BrokerError, type BrokerErrorCode } from './errors.ts'
export { checkSocketPath } from './listener/socket-path.ts'
export {
  LISTENER_LIMITS,
  type ListenerLimits,
  type SocketOwner,
  UnixListener,
} from './listener/unix-listener.ts'
export { handleWebRequest } from './listener/web-adapter.ts'
export { mcpAnswer } from './mcp/mcp-answer.ts'
export { McpLinks } from './mcp/mcp-links.ts'
export { listMcp, type McpListing, specBytes } from './mcp/mcp-listing.ts'
export type {
  McpCredential,
  McpLink,
  McpOutcome,
  McpServer,
  McpTokenGetter,
  McpTokenScope,
  McpToolListing,
  McpUse,
} from './mcp/mcp-port.ts'
export { mcpSecret } from './mcp/mcp-secret.ts'
export { shownTools } from './mcp/tool-specs.ts'
export { bytesCarry, carriesSecret } from './reflection/scan-json.ts'
export { STREAM_LIMITS, type StreamLimits } from './stream/event-answer.ts'
export { compileInput, type InputCheck } from './tool-input.ts'
export { readParameters, type ToolParameters } from './tool-parameters.ts'
export { localSchema, schemaProblem } from './tool-schema.ts'
export type { Delivery, DeskMessages, DeskWork } from './turn/desk-messages.ts'
export { parseMessage } from './turn/parse-message.ts'
export { type DeskTurn, sealedMessages } from './turn/sealed-messages.ts'
export {
  type BoundTurn,
  type Turn,
  TurnBinding,
  type TurnInput,
  type TurnLimits,
} from './turn/turn-binding.ts'
export {
  type DeliverOptions,
  type DeskOptions,
  type DeskState,
  type LastingDesk,
  OpenDesk,
  type WorkerDesk,
} from './turn/worker-desk.ts'
export {
  type GuestDesk,
  lastingWorkerRoutes,
  readMessage,
  type WorkerRouteOptions,
  workerRoutes,
} from './turn/worker-routes.ts'
export { type EndpointOrProblem, readEndpoint } from './upstream/endpoint.ts'
export { readJson } from './upstream/forward.ts'
export {
  openUpstream,
  sharedAgent,
  type UpstreamAnswer,
  type UpstreamCall,
} from './upstream/open-upstream.ts'
export { type CredentialCall, openWithCredential } from './upstream/open-with-credential.ts'
export { type PassOptions, passAnswer } from './upstream/pass-answer.ts'
export { getterFor, pickUpstream, type ScopePicker, type UpstreamPicking } from './upstream/pick-upstream.ts'
export { triedSlot } from './upstream/tried-slot.ts'
export { anthropicMessages } from './wire/anthropic.ts'
export type { WireError, WireFamily } from './wire/family.ts'
export { openAiChat } from './wire/openai-chat.ts'
export { openAiResponses } from './wire/openai-responses.ts'
