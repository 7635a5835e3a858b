import type { RuntimeClock } from '../src/runtime/clock.ts'

/** A clock that stands until it is moved. */
export class ManualClock implements RuntimeClock {
  #now = performance.now()
  readonly #tasks = new Set<{ readonly at: number; readonly task: () => void }>()

  now(): number {
    return this.#now
  }

  after(ms: number, task: () => void): () => void {
    const entry = { at: this.#now + ms, task }
    this.#tasks.add(entry)
    return () => this.#tasks.delete(entry)
  }

  /** How many tasks wait. */
  get waiting(): number {
    return this.#tasks.size
  }

  /** Moves the clock, and runs what is due, in the order of its time. */
  advance(ms: number): void {
    const end = this.#now + ms
    for (;;) {
      const [next] = [...this.#tasks].filter(({ at }) => at <= end).toSorted((a, b) => a.at - b.at)
      if (next === undefined) break
      this.#tasks.delete(next)
      this.#now = Math.max(this.#now, next.at)
      next.task()
    }
    this.#now = end
  }
}
