// What tests of the page's own functions found, for web_test.go to compare.
import { again, recurrence } from './again'
import { pieces, plain } from './ansi'
import { Backlog, mostWaiting } from './backlog'
import { pathAt } from './caret'
import { stacked } from './chart'
import { message } from './exec'
import { Output } from './output'
import { Pages } from './pages'
import { asked, filterOf, lineAt } from './filter'
import { broken, summary } from './points'
import { spansOf } from './spans'
import { bytes, duration } from './words'
import type * as api from './api'

const job = (number: number, state: string, more: Partial<api.Job> = {}): api.Job => ({
  id: String(number), number, uuid: 'u' + number, name: 'j' + number, user: 'ann', project: 'lab', state, submitted: '2026-01-01T00:00:00Z', ...more,
})

const marked = (text: string): string => pieces(text, plain)[0].map((p) => (p.look ? `[${p.look}:${p.text}]` : p.text)).join('')

const pages = new Pages<api.Job>((j) => j.uuid)
const several = (from: number, n: number) => Array.from({ length: n }, (_, i) => job(from + i, 'QUEUED'))

function output(...parts: string[]): string[] {
  const out = new Output()
  const bytes = new TextEncoder()
  for (const p of parts) out.add(bytes.encode(p))
  out.end()
  return out.lines.map((l) => `${l.number} ${l.text}`)
}

// drawn is what a terminal draws of output that comes while it draws the first of it.
function drawn(...sizes: number[]): string[] {
  const out: string[] = []
  const waits: (() => void)[] = []
  const log = new Backlog((p, done) => (out.push(typeof p === 'string' ? p.trim() : String(p.length)), waits.push(done)))
  for (const n of sizes) log.add(new Uint8Array(n))
  while (waits.length > 0) waits.shift()!()
  return out
}

export const found: Record<string, unknown> = {
  'colours': marked('\x1b[1;32mok\x1b[0m done \x1b[38;5;1mred\x1b[39m'),
  'palette that is not ours': marked('\x1b[38;2;1;2;3mtext\x1b[48;5;99m more'),
  'other sequences': marked('\x1b[2J\x1b]0;title\x07a\x1b[Kb\x1b'),
  'a title that does not end': marked('a\x1b]0;evil'),
  'progress': marked('10 %\r20 %\r30 %\r'),
  'markup': marked('<img src=x onerror=alert(1)>'),
  'lines in any cut': output('a\nb', 'c\n', 'd'),
  'mine': asked(filterOf(new URLSearchParams(), 'ann')),
  'everyone': asked(filterOf(new URLSearchParams('user=*&all=true&text=+a'), 'ann')),
  'what is read first': pages.missing(0, 40),
  'in sight': (pages.take(0, several(0, 100), 250), pages.missing(90, 120)),
  'far down': (pages.take(200, several(200, 50), 250), pages.missing(150, 1000)),
  'all there': (pages.take(100, several(100, 100), 250), pages.missing(0, 250) ?? 'nothing'),
  'read again': (pages.stale(), [pages.missing(0, 40), pages.at(249)?.id]),
  'put': [pages.put(job(7, 'RUNNING')), pages.at(7)?.state, pages.put(job(999, 'RUNNING')), pages.placeOf('u7')],
  'empty now': (pages.take(0, [], 0), [pages.missing(0, 40) ?? 'nothing', pages.at(0) ?? 'nothing', pages.here.length]),
  'tasks between': [0, 1, 2, 3, 4, 5, 6].map((i) => {
    const { at, task } = lineAt(i, [{ at: 1, tasks: several(50, 2) }, { at: 2, tasks: several(60, 1) }])
    return task ? `${at}:${task.id}` : String(at)
  }),
  'durations': [0, 59, 61, 3600, 90061, 86400 * 400].map(duration),
  'sizes': [0, 1023, 1024, 1536, 5 * 1024 ** 3, 123 * 1024 ** 4].map(bytes),
  'drawn': drawn(1, 2, 3),
  'drawn too slowly': drawn(1, mostWaiting, 10, 20),
  'the field at a place': ['{|', '{"na|', '{"name": "a, {", "req|', '{"a": {"b": [1, {"c": 2|', '{"a": {"b": 1}, |', '{"a": {"b": 1}, "c": "|', ']}|'].map((s) => pathAt(s, s.indexOf('|'))),
  'again': ['0 18 * * 1-5', '5 8 * * 3', '0 0 1 * *'].map((schedule) => again({ schedule, zone: 'Europe/Brussels' })),
  'comes again': [recurrence('each week', new Date('2026-01-07T18:30'), '2026-02-01', 'UTC').schedule, recurrence('each month', new Date('2026-01-07T18:30'), '', 'UTC')],
  'a message': [...message(4, new Uint8Array([1, 2]))],
  'curves': broken(1000, 10, [0, 10, 200], [[1, null, 3]]),
  'curve in words': [summary([1, null, 3], String), summary([null], String)],
  'plan': stacked(
    [
      { kind: 'running', start: '2026-01-01T00:00:00Z', end: '2026-01-01T02:00:00Z' },
      { kind: 'running', start: '2026-01-01T00:30:00Z' },
      { kind: 'promised', start: '2026-01-01T02:00:00Z', end: '2026-01-01T09:00:00Z' },
      { kind: 'reserved', start: '2026-01-02T02:00:00Z', end: '2026-01-02T09:00:00Z' },
    ],
    Date.parse('2026-01-01T01:00:00Z'), 4 * 3600_000,
  ).map((b) => `${b.row} of ${b.rows}: ${b.left} + ${b.width}`),
  'spans': spansOf(
    [
      { time: '2026-01-01T00:00:00.001Z', state: 'QUEUED', message: '' },
      { time: '2026-01-01T00:00:10Z', state: 'STARTING', message: '' },
      { time: '2026-01-01T00:00:11Z', message: 'pulled' },
      { time: '2026-01-01T00:00:12Z', state: 'RUNNING', message: '' },
      { time: '2026-01-01T00:01:00Z', state: 'FINISHED', message: '' },
    ],
    '2026-01-01T00:00:00Z', true, 0,
  ).map((s) => `${s.state} ${s.end - s.begin}`),
}
