import type { WireError } from './family.ts'

const TYPES: Readonly<Record<number, string>> = {
  402: 'insufficient_quota',
  403: 'permission_error',
  404: 'not_found_error',
  429: 'rate_limit_error',
}

/** The error body of the OpenAI families. */
export function openAiError({ status, code, message }: WireError): { error: object } {
  const type = TYPES[status] ?? (status >= 500 ? 'server_error' : 'invalid_request_error')
  return { error: { message, type, param: null, code } }
}
