/** A promise and what settles it. */
export interface Gate<T = void> {
  readonly promise: Promise<T>
  resolve(value: T): void
}

/** Makes a gate. */
export function gate<T = void>(): Gate<T> {
  let resolve: (value: T) => void = () => {}
  const promise = new Promise<T>((settle) => {
    resolve = settle
  })
  return { promise, resolve: (value) => resolve(value) }
}
