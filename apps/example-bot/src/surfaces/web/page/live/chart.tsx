import { signal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import uPlot from 'uplot'

interface ChartProps {
  readonly title: string
  /** 0, 1, 2 …: the turns, oldest first. */
  readonly turns: readonly number[]
  /** By group; `null` where there is no figure. */
  readonly lines: readonly (readonly (number | null)[])[]
  readonly format: (value: number) => string
  readonly kind: 'totals' | 'points'
  /** Shown in place of a chart without any figure. */
  readonly missing?: string
}

const HEIGHT = 116
/** Room for the longest figure beside the chart. */
const AXIS_WIDTH = 62

/** Goes up when the colours of the page change. */
const scheme = signal(0)
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
  scheme.value += 1
})

/** A small chart. What it shows can be read in the table below, so it is one picture for a screen reader. */
export function Chart({ title, turns, lines, format, kind, missing }: ChartProps) {
  const box = useRef<HTMLDivElement>(null)
  const empty = !lines.some((line) =>
    line.some((value) => value !== null && (kind === 'points' || value > 0)),
  )
  const colours = scheme.value
  useEffect(() => {
    const element = box.current
    if (element === null) return
    const plot = new uPlot(
      optionsOf(element, { lines, format, kind }),
      [[...turns], ...lines.map((line) => [...line])],
      element,
    )
    const resize = new ResizeObserver(() => plot.setSize({ width: element.clientWidth, height: HEIGHT }))
    resize.observe(element)
    return () => {
      resize.disconnect()
      plot.destroy()
    }
  }, [turns, lines, format, kind, colours])
  return (
    <figure class="chart">
      <figcaption>{title}</figcaption>
      {empty ? (
        <p class="hint">{missing ?? 'Nothing to draw yet.'}</p>
      ) : (
        <div
          ref={box}
          role="img"
          aria-label={`${title}, ${turns.length - 1} turns; the table below has the figures`}
        />
      )}
    </figure>
  )
}

function optionsOf(
  element: HTMLElement,
  { lines, format, kind }: Pick<ChartProps, 'lines' | 'format' | 'kind'>,
): uPlot.Options {
  const colour = colourReader(element)
  const axis = { stroke: colour('--soft'), font: '11px system-ui, sans-serif' }
  return {
    width: element.clientWidth,
    height: HEIGHT,
    legend: { show: false },
    cursor: { show: false },
    padding: [10, 8, 0, 0],
    scales: {
      x: { time: false, range: (_, __, max) => [0, max + 0.2] },
      y: { range: (_, __, max) => [0, max > 0 ? max * 1.08 : 1] },
    },
    axes: [
      { ...axis, size: 22, grid: { show: false }, ticks: { show: false }, incrs: [1, 2, 5, 10, 20, 50, 100] },
      {
        ...axis,
        size: AXIS_WIDTH,
        space: 26,
        ticks: { show: false },
        grid: { stroke: colour('--line'), width: 1 },
        values: (_, values) => values.map(format),
      },
    ],
    series: [
      {},
      ...lines.map((_, index) => ({
        stroke: colour(`--tone-${index % 6}`),
        width: 2,
        spanGaps: true,
        ...(index >= 6 ? { dash: [6, 4] } : {}),
        points: { show: kind === 'points', size: 6, fill: colour('--panel') },
      })),
    ],
  }
}

/** Reads a colour as the theme has it: a canvas knows no variables. */
function colourReader(element: HTMLElement): (name: string) => string {
  const probe = document.createElement('i')
  element.append(probe)
  const read = (name: string): string => {
    probe.style.color = `var(${name})`
    return getComputedStyle(probe).color
  }
  setTimeout(() => probe.remove(), 0)
  return read
}
