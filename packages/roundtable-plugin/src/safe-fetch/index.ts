export { ResponseTooLargeError, SafeFetchError, type SafeFetchErrorCode, UnsafeUrlError } from './errors.ts'
export type { PublicUrlOptions, SafeFetchOptions } from './options.ts'
export { isPublicAddress } from './public-address.ts'
export { assertPublicUrl, safeFetch } from './safe-fetch.ts'
