import { existsSync, mkdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core'

const CHROMIUM = '/usr/bin/chromium'

/**
 * Decides whether the tests in a browser run: `describe.skipIf(!browserGate())`. With `SANDBOX_REQUIRE_BROWSER=1` a
 * missing one is an error, so that a run that must cover the page cannot be green without it. Bun cannot drive one.
 */
export function browserGate(): boolean {
  if (process.versions.bun !== undefined) return false
  if (existsSync(CHROMIUM)) return true
  if (process.env.SANDBOX_REQUIRE_BROWSER === '1') {
    throw new TypeError(
      `SANDBOX_REQUIRE_BROWSER=1, but there is no ${CHROMIUM}: install the package chromium`,
    )
  }
  return false
}

/** Starts Debian's Chromium without a window. */
export function openBrowser(): Promise<Browser> {
  return chromium.launch({ executablePath: CHROMIUM, args: ['--disable-gpu', '--disable-dev-shm-usage'] })
}

/** How the page is looked at. */
export const LOOKS = {
  light: { viewport: { width: 1360, height: 860 }, colorScheme: 'light' },
  dark: { viewport: { width: 1360, height: 860 }, colorScheme: 'dark' },
  phone: { viewport: { width: 390, height: 844 }, colorScheme: 'light', hasTouch: true, isMobile: true },
  'phone-dark': {
    viewport: { width: 390, height: 844 },
    colorScheme: 'dark',
    hasTouch: true,
    isMobile: true,
  },
} as const satisfies Record<string, BrowserContextOptions>

/** What the page and its console complained about: a page of ours complains about nothing. */
export function complaints(page: Page): string[] {
  const found: string[] = []
  page.on('pageerror', (error) => found.push(error.message))
  page.on('console', (message) => {
    if (message.type() === 'error' || message.type() === 'warning') found.push(message.text())
  })
  return found
}

/** Keeps a picture of the page where `SANDBOX_SCREENSHOTS` says, else in the directory for temporary files. */
export async function keepPicture(page: Page, name: string): Promise<void> {
  const dir = process.env.SANDBOX_SCREENSHOTS || join(tmpdir(), `sandbox-page-${process.getuid?.() ?? 0}`)
  mkdirSync(dir, { recursive: true, mode: 0o700 })
  await page.screenshot({ path: join(dir, `${name}.png`) })
}
