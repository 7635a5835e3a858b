import { describe, expect, test } from 'vitest'
import {
  fingerprintOf,
  type RefreshingOptions,
  type RefreshOutcome,
  refreshingOAuth,
  type TokenPair,
  type TokenStore,
} from './index.ts'

const scope = { channel: 'demo:alpha', speaker: { id: 'u-ann', name: 'Ann' } }
const hour = 3_600_000

/** A service that rotates, and a store; everything else is the real thing. */
class World {
  now = 1_000_000_000
  stored: TokenPair | undefined = this.pair(0)
  requests: string[] = []
  writes: TokenPair[] = []
  valid = 'refresh-number-0'
  count = 0
  /** What the next request meets instead of a good service. */
  trouble: ((sent: TokenPair) => Promise<RefreshOutcome> | RefreshOutcome) | undefined
  failWrites = 0
  #tail: Promise<unknown> = Promise.resolve()

  pair(n: number, lifeMs = hour): TokenPair {
    return {
      accessToken: `access-number-${n}`,
      refreshToken: `refresh-number-${n}`,
      expiresAt: this.now + lifeMs,
    }
  }

  readonly store: TokenStore = {
    name: 'login.json',
    read: async () => this.stored,
    write: async (pair) => {
      if (this.failWrites-- > 0) throw new TypeError('disk full')
      this.writes.push(pair)
      this.stored = pair
    },
    exclusively: <T>(task: () => Promise<T>): Promise<T> => {
      const turn = this.#tail.then(task)
      this.#tail = turn.catch(() => {})
      return turn
    },
  }

  /** The service rotates the pair, whether or not the reply arrives. */
  rotate(sent: TokenPair): RefreshOutcome {
    if (sent.refreshToken !== this.valid) return { kind: 'refused', reason: 'invalid_grant' }
    const pair = this.pair(++this.count)
    this.valid = pair.refreshToken
    return { kind: 'pair', pair }
  }

  readonly refresh = async (sent: TokenPair): Promise<RefreshOutcome> => {
    this.requests.push(sent.refreshToken)
    await new Promise((done) => setImmediate(done))
    const { trouble } = this
    this.trouble = undefined
    return trouble === undefined ? this.rotate(sent) : trouble(sent)
  }

  login(options: Partial<RefreshingOptions> = {}) {
    const getter = refreshingOAuth({
      store: this.store,
      refresh: this.refresh,
      now: () => this.now,
      random: () => 0,
      ...options,
    })
    return {
      token: async (rejected?: string) => {
        const answer = await getter(scope, {
          signal: new AbortController().signal,
          ...(rejected !== undefined && { rejected: { fingerprint: fingerprintOf(rejected), status: 401 } }),
        })
        return typeof answer === 'object' ? answer?.token : answer
      },
    }
  }
}

describe('when to refresh', () => {
  test('a token that is good is used as it is', async () => {
    const world = new World()
    expect(await world.login().token()).toBe('access-number-0')
    expect(world.requests).toEqual([])
  })

  test('no login is no credential', async () => {
    const world = new World()
    world.stored = undefined
    expect(await world.login().token()).toBe(undefined)
  })

  test('it is refreshed before its end, by margin and jitter', async () => {
    for (const [random, dueMs] of [
      [0, 300_000],
      [1, 360_000],
    ] as const) {
      const world = new World()
      const login = world.login({ random: () => random })
      world.now += hour - dueMs - 1
      expect(await login.token()).toBe('access-number-0')
      world.now += 1
      expect(await login.token()).toBe('access-number-1')
      expect(world.writes).toEqual([world.stored])
    }
  })

  test('T71 500 parallel calls on an expired token cause exactly one refresh', async () => {
    const world = new World()
    const login = world.login()
    world.now += 2 * hour
    const tokens = await Promise.all(Array.from({ length: 500 }, () => login.token()))
    expect(new Set(tokens)).toEqual(new Set(['access-number-1']))
    expect(world.requests).toEqual(['refresh-number-0'])
  })

  test('T71 who waited for the lock reads the store again before it refreshes', async () => {
    const world = new World()
    const logins = Array.from({ length: 50 }, () => world.login())
    world.now += 2 * hour
    const tokens = await Promise.all(logins.map((login) => login.token()))
    expect(new Set(tokens)).toEqual(new Set(['access-number-1']))
    expect(world.requests).toHaveLength(1)
  })
})

describe('what a new pair goes through', () => {
  test('T71 it is stored before it is used', async () => {
    const world = new World()
    const order: string[] = []
    const write = world.store.write
    const store = {
      ...world.store,
      write: async (pair: TokenPair) => {
        await new Promise((done) => setImmediate(done))
        await write(pair)
        order.push('stored')
      },
    }
    world.now += 2 * hour
    await world.login({ store }).token()
    order.push('used')
    expect(order).toEqual(['stored', 'used'])
  })

  test('T71 when it cannot be stored, it is not used and not lost', async () => {
    const world = new World()
    const login = world.login()
    world.now += 2 * hour
    world.failWrites = 2
    await expect(login.token()).rejects.toMatchObject({ code: 'source_invalid', message: /cannot be stored/ })
    await expect(login.token()).rejects.toThrow(/cannot be stored/)
    expect(await login.token()).toBe('access-number-1')
    expect(world.requests).toEqual(['refresh-number-0'])
    expect(world.stored?.refreshToken).toBe('refresh-number-1')
  })

  test('a pair that waits is thrown away when somebody logged in meanwhile', async () => {
    const world = new World()
    const login = world.login()
    world.now += 2 * hour
    world.failWrites = 1
    await expect(login.token()).rejects.toThrow(/cannot be stored/)
    world.stored = { ...world.pair(7), refreshToken: 'refresh-login-7' }
    expect(await login.token()).toBe('access-number-7')
    expect(world.writes).toEqual([])
  })
})

describe('failures', () => {
  test.each<[string, (sent: TokenPair) => Promise<RefreshOutcome> | RefreshOutcome]>([
    ['fails', () => ({ kind: 'failed', reason: 'the token endpoint answered 500' })],
    ['throws', () => Promise.reject(new TypeError('socket hang up'))],
  ])('T71 a refresh that %s never overwrites a good pair', async (_what, trouble) => {
    const world = new World()
    const login = world.login()
    world.now += 2 * hour
    world.trouble = trouble
    const before = world.stored
    await expect(login.token()).rejects.toMatchObject({ code: 'source_invalid' })
    expect(world.stored).toBe(before)
    expect(world.writes).toEqual([])
  })

  test('while the old token is still good, a failed refresh fails no call', async () => {
    const world = new World()
    const login = world.login()
    world.now += hour - 1_000
    world.trouble = () => ({ kind: 'failed', reason: 'the token endpoint answered 503' })
    expect(await login.token()).toBe('access-number-0')
    world.now += 2_000
    await expect(login.token()).rejects.toThrow(/503/)
  })

  test('after a failure there is a pause, then it is tried again', async () => {
    const world = new World()
    const login = world.login({ pauseMs: 1_000 })
    world.now += 2 * hour
    world.trouble = () => ({ kind: 'failed', reason: 'the token endpoint answered 429' })
    for (let i = 0; i < 5; i++) await expect(login.token()).rejects.toThrow(/429/)
    expect(world.requests).toHaveLength(1)
    world.now += 1_000
    expect(await login.token()).toBe('access-number-1')
  })

  test('T71 T74 a lost reply of a one-use token ends in one clear "log in again", not in a loop', async () => {
    const world = new World()
    const login = world.login({ pauseMs: 0 })
    world.now += 2 * hour
    world.trouble = (sent) => {
      world.rotate(sent)
      return { kind: 'failed', reason: 'the reply was lost' }
    }
    await expect(login.token()).rejects.toThrow(/reply was lost/)
    for (let i = 0; i < 5; i++) {
      await expect(login.token()).rejects.toMatchObject({ code: 'login_required', message: /log in again/ })
    }
    expect(world.requests).toEqual(['refresh-number-0', 'refresh-number-0'])
    world.stored = { ...world.pair(9), refreshToken: 'refresh-login-9' }
    expect(await login.token()).toBe('access-number-9')
  })

  test('a refused login still serves while its access token is good', async () => {
    const world = new World()
    const login = world.login()
    world.now += hour - 1_000
    world.valid = 'another'
    expect(await login.token()).toBe('access-number-0')
    expect(await login.token()).toBe('access-number-0')
    expect(world.requests).toHaveLength(1)
  })

  test('T71 a loser reads the store again before it gives up', async () => {
    const world = new World()
    const login = world.login()
    world.now += 2 * hour
    world.trouble = () => {
      world.stored = world.pair(5)
      return { kind: 'refused', reason: 'invalid_grant' }
    }
    expect(await login.token()).toBe('access-number-5')
    expect(world.requests).toHaveLength(1)
  })

  test('T71 what it finds there may be due itself, and is refreshed once', async () => {
    for (const good of [true, false]) {
      const world = new World()
      const login = world.login()
      world.now += 2 * hour
      world.trouble = () => {
        world.stored = { ...world.pair(5, 1_000), refreshToken: 'refresh-other' }
        world.valid = good ? 'refresh-other' : 'refresh-neither'
        return { kind: 'refused', reason: 'invalid_grant' }
      }
      const token = login.token()
      if (good) expect(await token).toBe('access-number-1')
      else await expect(token).rejects.toMatchObject({ code: 'login_required' })
      expect(world.requests).toEqual(['refresh-number-0', 'refresh-other'])
    }
  })

  test('a login that was removed while it was refreshed is asked for again', async () => {
    const world = new World()
    const login = world.login()
    world.now += 2 * hour
    world.trouble = () => {
      world.stored = undefined
      return { kind: 'refused', reason: 'invalid_grant' }
    }
    await expect(login.token()).rejects.toMatchObject({ code: 'login_required' })
  })

  test('no message holds a token', async () => {
    const world = new World()
    const login = world.login({ pauseMs: 0 })
    world.now += 2 * hour
    world.trouble = () => Promise.reject(new TypeError('x'))
    const errors = [await login.token().catch((error: Error) => error.message)]
    world.valid = 'another'
    errors.push(await login.token().catch((error: Error) => error.message))
    expect(errors.join()).not.toMatch(/access-|refresh-/)
  })
})

describe('T74 a token that the service refused', () => {
  test('is refreshed by force, once', async () => {
    const world = new World()
    const login = world.login()
    expect(await login.token('access-number-0')).toBe('access-number-1')
    expect(await login.token('access-number-1')).toBe('access-number-1')
    expect(world.requests).toHaveLength(1)
    world.now += 5_000
    expect(await login.token('access-number-1')).toBe('access-number-2')
  })

  test('is not refreshed when the store has a newer one', async () => {
    const world = new World()
    world.stored = world.pair(3)
    expect(await world.login().token('access-number-0')).toBe('access-number-3')
    expect(world.requests).toEqual([])
  })

  test('is not used again when the refresh fails', async () => {
    const world = new World()
    world.trouble = () => ({ kind: 'failed', reason: 'down' })
    await expect(world.login().token('access-number-0')).rejects.toThrow(/down/)
  })
})

test('unusable options are refused at once', () => {
  const world = new World()
  for (const bad of [{ marginMs: -1 }, { jitterMs: Number.NaN }, { pauseMs: -1 }]) {
    expect(() => world.login(bad)).toThrow(TypeError)
  }
})
