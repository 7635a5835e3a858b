/** What a sealed worker holds in place of an API key. It is not a secret and may be printed. */
export const SEALED_PLACEHOLDER = 'sandbox-dummy-key'

/**
 * What a Pi worker holds in place of an OAuth token. It has the shape of one, since the agent looks at it before it
 * calls. It is not a secret and may be printed.
 */
export const PI_PLACEHOLDER = 'sk-ant-oat01-sandbox-dummy-token'
