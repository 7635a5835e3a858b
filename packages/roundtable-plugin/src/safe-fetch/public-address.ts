import { isIP } from 'node:net'
import ipaddr from 'ipaddr.js'

/** RFC 6890 and its successors: what is not on the public internet, or leads back into a private network. */
const REFUSED_V4 = [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.88.99.0/24',
  '192.168.0.0/16',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/3',
].map((range) => parseRange(range))

/** The part of IPv6 that is handed out at all; everything beyond it is refused. */
const GLOBAL_V6 = parseRange('2000::/3')

/** Inside it: Teredo, benchmarking, ORCHID, documentation, 6to4. */
const REFUSED_V6 = [
  '2001::/32',
  '2001:2::/32',
  '2001:10::/28',
  '2001:20::/28',
  '2001:db8::/32',
  '2002::/16',
  '3fff::/16',
].map((range) => parseRange(range))

/** A block of addresses. */
export type AddressRange = [ipaddr.IPv4 | ipaddr.IPv6, number]

/**
 * True for an address of the public internet: one literal IPv4 or IPv6 address in its usual spelling. Names, numbers
 * in other bases, zone ids, private, reserved and documentation ranges are false; an IPv4 address mapped into IPv6 is
 * judged as the IPv4 address.
 */
export function isPublicAddress(address: string): boolean {
  const parsed = parseAddress(address)
  if (parsed === undefined) return false
  if (parsed.kind() === 'ipv4') return !REFUSED_V4.some((range) => isIn(parsed, range))
  return isIn(parsed, GLOBAL_V6) && !REFUSED_V6.some((range) => isIn(parsed, range))
}

/** An address as bytes, a mapped one as its IPv4 address; `undefined` for anything else. */
export function parseAddress(address: string): ipaddr.IPv4 | ipaddr.IPv6 | undefined {
  if (isIP(address) === 0 || address.includes('%')) return undefined
  return ipaddr.process(address)
}

/**
 * Reads `10.0.0.0/8`, `fd00::/8` or a single address; mapped ones as those of IPv4, as addresses are. Throws on anything
 * else: `10/8` would be 0.0.0.10/8 to a lenient reader, and refuse nothing that anybody meant.
 */
export function parseRange(range: string): AddressRange {
  const [base = '', bits, more] = range.split('/')
  const address = parseAddress(base)
  if (address === undefined || more !== undefined) throw new TypeError('no address in its usual spelling')
  const most = address.kind() === 'ipv4' ? 32 : 128
  if (bits === undefined) return [address, most]
  // An address that was mapped has lost 96 bits.
  const lost = most === 32 && base.includes(':') ? 96 : 0
  const left = /^\d{1,3}$/.test(bits) ? Number(bits) - lost : -1
  if (left < 0 || left > most) throw new TypeError('no range of such addresses')
  return [address, left]
}

/** False where the kinds differ. */
export function isIn(address: ipaddr.IPv4 | ipaddr.IPv6, [base, bits]: AddressRange): boolean {
  return address.kind() === base.kind() && address.match(base as never, bits)
}
