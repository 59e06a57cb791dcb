import { useEffect, useState } from 'preact/hooks'

// duration writes seconds as people say them, in two units at most.
export function duration(seconds: number): string {
  const s = Math.max(Math.round(seconds), 0)
  const units: [number, string][] = [[86400, 'd'], [3600, 'h'], [60, 'min'], [1, 's']]
  const i = units.findIndex(([size]) => s >= size)
  if (i < 0) return '0 s'
  const [size, name] = units[i]!
  const next = units[i + 1]
  const rest = next ? Math.floor((s % size) / next[0]) : 0
  return `${Math.floor(s / size)} ${name}` + (next && rest ? ` ${rest} ${next[1]}` : '')
}

// bytes writes a size in the largest unit that it fills.
export function bytes(n: number): string {
  let unit = 0
  while (n >= 1024 && unit < 5) {
    n /= 1024
    unit++
  }
  return `${n >= 100 || unit === 0 ? Math.round(n) : n.toFixed(1).replace(/\.0$/, '')} ${['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'][unit]}`
}

// count writes a number with a word that agrees with it.
export const count = (n: number, one: string, many = one + 's'): string => `${n.toLocaleString('en')} ${n === 1 ? one : many}`

// sentence begins a text with a capital letter.
export const sentence = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1)

// Time is a moment in the reader's zone; UTC where the pointer rests.
export function Time(props: { at?: string }) {
  if (!props.at) return null
  const at = new Date(props.at)
  const today = at.toDateString() === new Date().toDateString()
  const clock = at.toLocaleTimeString([], { hour: '2-digit', minute: '2-digit', second: '2-digit' })
  return (
    <time dateTime={props.at} title={at.toISOString().replace('T', ' ').replace(/\.\d+Z$/, ' UTC')}>
      {today ? clock : at.toLocaleDateString([], { month: 'short', day: 'numeric' }) + ' ' + clock}
    </time>
  )
}

// useSeconds draws the component again each second, while the page is seen.
export function useSeconds(active = true): void {
  const [, redraw] = useState(0)
  useEffect(() => {
    if (!active) return
    const timer = setInterval(() => document.hidden || redraw((n) => n + 1), 1000)
    return () => clearInterval(timer)
  }, [active])
}

export const since = (at: string): number => (Date.now() - Date.parse(at)) / 1000
