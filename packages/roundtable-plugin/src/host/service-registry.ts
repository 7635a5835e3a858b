import { SandboxPluginError } from '../errors.ts'
import type { HostServices, ServiceKey } from '../host-contract.ts'

/** The services of all plugins, matched by key id alone. */
export class ServiceRegistry {
  /** Which plugin declares a key. */
  readonly #declared = new Map<string, string>()
  readonly #values = new Map<string, unknown>()

  /** Announces that a plugin will provide a key. Throws `plugin_invalid` when another does. */
  declare(plugin: string, key: ServiceKey<unknown>): void {
    const other = this.#declared.get(key.id)
    if (other !== undefined) {
      throw new SandboxPluginError('plugin_invalid', `${plugin} and ${other} both provide ${key.id}`)
    }
    this.#declared.set(key.id, plugin)
  }

  /** Provides one of the host's own services. */
  own<T>(key: ServiceKey<T>, value: T): void {
    this.declare('the host', key)
    this.#values.set(key.id, value)
  }

  /** What a plugin sees. `provide` works until `close` is called, which checks that nothing is missing. */
  view(plugin: string, provides: readonly ServiceKey<unknown>[] = []): HostServices & { close(): void } {
    let open = true
    const provide = <T>(key: ServiceKey<T>, value: T) => {
      if (!open || !provides.some(({ id }) => id === key.id) || this.#values.has(key.id)) {
        throw new SandboxPluginError(
          'plugin_invalid',
          `${plugin} may provide ${key.id} only during its setup, only when declared, and only once`,
        )
      }
      this.#values.set(key.id, value)
    }
    const close = () => {
      open = false
      const missing = provides.find(({ id }) => !this.#values.has(id))
      if (missing === undefined) return
      throw new SandboxPluginError(
        'plugin_invalid',
        `${plugin} declares ${missing.id} and did not provide it`,
      )
    }
    return { get: (key) => this.get(key), find: (key) => this.find(key), provide, close }
  }

  /** The service. Throws `service_missing` when nobody declares it or it is not set up yet. */
  get<T>(key: ServiceKey<T>): T {
    if (this.#values.has(key.id)) return this.#values.get(key.id) as T
    throw new SandboxPluginError('service_missing', key.absent ?? `nothing provides ${key.id}`)
  }

  /** The service; `undefined` only when nobody declares it. */
  find<T>(key: ServiceKey<T>): T | undefined {
    return this.#declared.has(key.id) ? this.get(key) : undefined
  }
}
