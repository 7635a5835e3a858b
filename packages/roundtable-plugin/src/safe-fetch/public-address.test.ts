import { describe, expect, test } from 'vitest'
import { isIn, isPublicAddress, parseAddress, parseRange } from './public-address.ts'

describe('isPublicAddress', () => {
  test.each([
    '0.0.0.0',
    '0.255.255.255',
    '10.0.0.1',
    '10.255.255.255',
    '100.64.0.0',
    '100.127.255.255',
    '127.0.0.1',
    '127.255.255.254',
    '169.254.169.254',
    '172.16.0.1',
    '172.31.255.255',
    '192.0.0.1',
    '192.0.2.9',
    '192.88.99.1',
    '192.168.0.1',
    '198.18.0.1',
    '198.19.255.255',
    '198.51.100.7',
    '203.0.113.7',
    '224.0.0.1',
    '239.1.1.1',
    '240.0.0.1',
    '255.255.255.255',
  ])('SF-04 %s is not public', (address) => {
    expect(isPublicAddress(address)).toBe(false)
  })

  test.each([
    '1.1.1.1',
    '8.8.8.8',
    '9.255.255.255',
    '11.0.0.0',
    '100.63.255.255',
    '100.128.0.0',
    '172.15.255.255',
    '172.32.0.0',
    '192.0.1.1',
    '192.88.98.1',
    '198.17.255.255',
    '198.20.0.0',
    '223.255.255.255',
  ])('SF-04 %s is public', (address) => {
    expect(isPublicAddress(address)).toBe(true)
  })

  test.each([
    '::',
    '::1',
    'fe80::1',
    'fc00::1',
    'fd12::1',
    'ff02::1',
    '64:ff9b::808:808',
    '1fff::1',
    '4000::1',
    '2001::1',
    '2001:0:4136:e378:8000:63bf:3fff:fdd2',
    '2001:2::1',
    '2001:10::1',
    '2001:1f:ffff::1',
    '2001:20::1',
    '2001:2f::1',
    '2001:db8::1',
    '2002:808:808::1',
    '3fff::1',
    '::ffff:127.0.0.1',
    '::ffff:7f00:1',
    '::ffff:10.0.0.1',
    '::127.0.0.1',
  ])('SF-05 %s is not public', (address) => {
    expect(isPublicAddress(address)).toBe(false)
  })

  test.each(['2606:4700::1111', '2001:30::1', '2001:4860:4860::8888', '3ffe::1', '::ffff:8.8.8.8'])(
    'SF-05 %s is public',
    (address) => {
      expect(isPublicAddress(address)).toBe(true)
    },
  )

  test.each([
    '',
    'example.com',
    '8.8.8',
    '08.8.8.8',
    '0x8.8.8.8',
    '134744072',
    '8.8.8.8 ',
    ' 8.8.8.8',
    '[2606:4700::1111]',
    '2606:4700::1111%eth0',
    'fe80::1%1',
    '8.8.8.8:80',
    '8.8.8.8/32',
  ])('SF-06 %j is no address in its usual spelling', (address) => {
    expect(isPublicAddress(address)).toBe(false)
  })
})

test.each([
  ['151.101.0.0/16', '151.101.1.1', true],
  ['151.101.0.0/16', '::ffff:151.101.1.1', true],
  ['::ffff:151.101.0.0/112', '151.101.1.1', true],
  ['::ffff:151.101.0.0/112', '151.102.1.1', false],
  ['::ffff:151.101.1.1', '151.101.1.1', true],
  ['2001:db8::/32', '2001:db8:1::1', true],
  ['0.0.0.0/0', '2001:db8::1', false],
])('SF-05 of the range %s, %s is a part: %s', (range, address, inside) => {
  const parsed = parseAddress(address)
  expect(parsed !== undefined && isIn(parsed, parseRange(range))).toBe(inside)
})
