/** For which kind of credential a placeholder stands. */
export type PlaceholderKind = 'api-key' | 'anthropic-api-key' | 'anthropic-oauth' | 'openai-oauth'

const JWT_EXPIRES = 4_102_444_800

/**
 * A value for the place of a credential where none may be, shaped so that a program that looks inside does not
 * stumble: an OpenAI login decodes as a JWT with an account id and an expiry in the year 2100. It is no secret, the
 * same for everybody, and worth nothing anywhere.
 */
export function placeholderFor(kind: PlaceholderKind): string {
  switch (kind) {
    case 'api-key':
      return 'sk-sandbox-placeholder-key'
    case 'anthropic-api-key':
      return 'sk-ant-api03-sandbox-placeholder-key'
    case 'anthropic-oauth':
      return 'sk-ant-oat01-sandbox-placeholder-token'
    case 'openai-oauth':
      return jwt({
        iss: 'https://sandbox.invalid',
        sub: 'sandbox-placeholder',
        iat: 0,
        exp: JWT_EXPIRES,
        email: 'placeholder@sandbox.invalid',
        'https://api.openai.com/auth': {
          chatgpt_account_id: 'sandbox-placeholder',
          chatgpt_user_id: 'sandbox-placeholder',
          chatgpt_plan_type: 'plus',
        },
      })
  }
}

/** RFC 7519 section 6: an unsecured JWT, but for a third part, which some programs insist on. */
function jwt(claims: object): string {
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
  return `${part({ alg: 'none', typ: 'JWT' })}.${part(claims)}.sandbox-placeholder`
}
