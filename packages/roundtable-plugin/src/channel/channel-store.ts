import { SandboxPluginError } from '../errors.ts'
import type { ChannelKey } from '../host-contract.ts'
import { StateFile } from './state-file.ts'

/** What {@link SandboxChannelStore} takes. */
export interface ChannelStoreOptions {
  /** Absolute path. The directory must be private; it is made when missing. */
  readonly stateFile: string
  /** Used, and saved, only when there is no file yet. */
  readonly initialChannels?: readonly ChannelKey[]
  /** Real directories that the file must not be in. */
  readonly outside?: readonly string[]
  /** Hears of each channel that was turned on or off, by whomever, once that is saved. Must not throw. */
  readonly onSwitch?: (channel: ChannelKey, on: boolean) => void
}

/** As long as a turn's channel may be. */
const isKey = (value: unknown): value is ChannelKey =>
  typeof value === 'string' && value.length <= 512 && /^[a-z][a-z0-9_-]*:.+$/s.test(value)

/**
 * Which channels are answered from sealed workers. Kept in a file, so it outlives the host. A file that cannot be
 * understood stops the host: guessing could hand a channel to an agent with host tools.
 */
export class SandboxChannelStore {
  readonly #file: StateFile
  readonly #channels: Set<ChannelKey>
  readonly #onSwitch: ChannelStoreOptions['onSwitch']

  /** @throws SandboxPluginError `state_refused`, `state_invalid`, `state_unwritable` */
  constructor(options: ChannelStoreOptions) {
    this.#onSwitch = options.onSwitch
    this.#file = new StateFile(options.stateFile, options.outside ?? [])
    const text = this.#file.read()
    this.#channels = new Set(text === undefined ? (options.initialChannels ?? []) : this.#parse(text))
    for (const channel of this.#channels) checkKey(channel)
    if (text === undefined && this.#channels.size > 0) this.#save()
  }

  /** True when the channel is on. Cheap; never throws. */
  has(channel: ChannelKey): boolean {
    return this.#channels.has(channel)
  }

  /** The channels that are on, sorted. */
  list(): ChannelKey[] {
    return [...this.#channels].sort()
  }

  /**
   * Turns a channel on; false when it was on already.
   * @throws SandboxPluginError `state_unwritable`, and then nothing changed; `input_invalid` for a key that is none
   */
  enable(channel: ChannelKey): boolean {
    checkKey(channel)
    if (this.#channels.has(channel)) return false
    this.#channels.add(channel)
    this.#saveOr(() => this.#channels.delete(channel))
    this.#onSwitch?.(channel, true)
    return true
  }

  /**
   * Turns a channel off; false when it was off already.
   * @throws SandboxPluginError `state_unwritable`, and then nothing changed
   */
  disable(channel: ChannelKey): boolean {
    if (!this.#channels.delete(channel)) return false
    this.#saveOr(() => this.#channels.add(channel))
    this.#onSwitch?.(channel, false)
    return true
  }

  #saveOr(rollBack: () => void): void {
    try {
      this.#save()
    } catch (cause) {
      rollBack()
      throw cause
    }
  }

  #save(): void {
    this.#file.write(`${JSON.stringify(this.list(), undefined, 2)}\n`)
  }

  #parse(text: string): ChannelKey[] {
    const invalid = (cause?: unknown) =>
      new SandboxPluginError(
        'state_invalid',
        `${this.#file.path} is not a JSON list of channel keys such as ["discord:123"]. Mend it, or move it away to start with initialChannels.`,
        { cause },
      )
    let value: unknown
    try {
      value = JSON.parse(text)
    } catch (cause) {
      throw invalid(cause)
    }
    if (!Array.isArray(value) || !value.every(isKey)) throw invalid()
    return value
  }
}

function checkKey(channel: ChannelKey): void {
  if (isKey(channel)) return
  throw new SandboxPluginError('input_invalid', `"${channel}" is not a channel key such as "discord:123".`)
}
