import type { SecretMatcher } from '@sandbox/credential-scope'
import { CallRefusal } from '../call/refusal.ts'
import { Unescape } from '../reflection/unescape.ts'
import type { DeltaText } from '../wire/family.ts'

/** Decision 18: an ending shorter than this many characters of a secret holds nothing back. */
const HOLD_FROM = 8
const MOST_BLOCKS = 4096

type Scan = ReturnType<SecretMatcher['stream']>

/** The text of one block so far, as much of it as may still turn out to be the beginning of a secret. */
interface Window {
  readonly plain: Scan
  /** For a block that is JSON text: what is written in it. */
  readonly decoded: { readonly unescape: Unescape; readonly scan: Scan } | undefined
}

const encoder = new TextEncoder()

/** Follows the text of every block across its deltas, so that a secret that is spelled out in pieces is found. */
export class BlockWindows {
  readonly #matcher: SecretMatcher
  readonly #windows = new Map<string, Window>()
  /** Of blocks that are complete, those of late: a provider may add to one all the same. */
  readonly #complete = new Map<string, Window>()
  readonly #held = new Set<string>()

  constructor(matcher: SecretMatcher) {
    this.#matcher = matcher
  }

  /** Whether the text of some block ends in what may become a secret. */
  get holding(): boolean {
    return this.#held.size > 0
  }

  /**
   * Adds a piece; true when it completes a secret.
   * @throws CallRefusal `upstream_invalid` for more blocks than any answer has.
   */
  push({ block, text, deeper }: DeltaText): boolean {
    const window = this.#windows.get(block) ?? this.#open(block, deeper)
    const bytes = encoder.encode(text)
    window.plain.push(bytes)
    window.decoded?.scan.push(window.decoded.unescape.push(bytes))
    if (window.plain.held + (window.decoded?.scan.held ?? 0) > 0) this.#held.add(block)
    else this.#held.delete(block)
    return window.plain.hit || window.decoded?.scan.hit === true
  }

  /** The blocks whose names start so are complete: nothing waits for what they may become. */
  close(prefix: string): void {
    for (const [block, window] of this.#windows) {
      if (!block.startsWith(prefix)) continue
      this.#windows.delete(block)
      this.#held.delete(block)
      this.#complete.set(block, window)
    }
    for (const oldest of this.#complete.keys()) {
      if (this.#complete.size <= MOST_BLOCKS) break
      this.#complete.delete(oldest)
    }
  }

  #open(block: string, deeper: boolean): Window {
    if (this.#windows.size === MOST_BLOCKS) throw new CallRefusal('upstream_invalid', { retry: false })
    const scan = () => this.#matcher.stream({ holdFromBytes: HOLD_FROM })
    const window = this.#complete.get(block) ?? {
      plain: scan(),
      decoded: deeper ? { unescape: new Unescape(), scan: scan() } : undefined,
    }
    this.#complete.delete(block)
    this.#windows.set(block, window)
    return window
  }
}
