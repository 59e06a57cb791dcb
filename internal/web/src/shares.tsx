import { useEffect, useState } from 'preact/hooks'
import type * as api from './api'
import { Trouble } from './dialog'
import { read } from './http'
import { Mine } from './mine'

// Shares is the fair-share tree, and what each used in the last 30 days.
export function Shares() {
  const [shares, setShares] = useState<api.Share[]>()
  const [usage, setUsage] = useState<api.UsageReport>()
  const [failed, fail] = useState<unknown>()
  useEffect(() => {
    const end = new AbortController()
    const failing = (e: unknown) => end.signal.aborted || fail(e)
    read<api.ShareList>('/v1/shares', end.signal).then((l) => setShares(l.shares ?? []), failing)
    read<api.UsageReport>('/v1/usage?by=day', end.signal).then(setUsage, failing)
    return () => end.abort()
  }, [])
  return (
    <>
      <div class="bar">
        <h1>Shares and use</h1>
      </div>
      <Trouble of={failed} />
      {usage && <Days report={usage} />}
      {shares && (
        <div class="sideways" tabIndex={0} role="region" aria-label="Shares">
          <table class="plain">
            <thead>
              <tr>
                <th>Project, user</th>
                <th class="number">Shares</th>
                <th class="number">Part of it</th>
                <th class="number">Used, with decay</th>
                <th class="number">Factor</th>
                <th class="number">This month</th>
                <th class="number">Budget</th>
              </tr>
            </thead>
            <tbody>
              {shares.map((s) => (
                <tr key={s.project + ' ' + (s.user ?? '')}>
                  <td class={'depth' + Math.min(s.depth, 6)}>{s.user ?? s.project}</td>
                  <td class="number">{s.shares}</td>
                  <td class="number">{percent(s.normShares)}</td>
                  <td class="number">
                    {hours(s.usageHours)} ({percent(s.normUsage)})
                  </td>
                  <td class="number">{s.user ? (s.fairShare ?? 0).toFixed(3) : ''}</td>
                  <td class="number">{hours(s.monthHours)}</td>
                  <td class="number">{s.budget ? `${hours(s.budget.usedHours)} of ${hours(s.budget.hours)}` : ''}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      <Mine />
    </>
  )
}

const percent = (part: number): string => (100 * part).toFixed(1) + ' %'
const hours = (h: number): string => h.toFixed(h < 10 ? 2 : 0) + ' h'

// daysOf are all days of a report, also those on which nothing was used.
export function daysOf(report: Pick<api.UsageReport, 'start' | 'end'>): string[] {
  const out: string[] = []
  for (let at = Date.parse(report.start); at < Date.parse(report.end) && out.length < 366; at += 86_400_000) out.push(new Date(at).toISOString().slice(0, 10))
  return out
}

// Days draws a bar for each day's billed GPU hours.
function Days(props: { report: api.UsageReport }) {
  const used = new Map((props.report.rows ?? []).map((r) => [r.day, r.billedHours]))
  const rows = daysOf(props.report).map((day) => ({ day, billedHours: used.get(day) ?? 0 }))
  const most = Math.max(...used.values(), 0)
  if (most <= 0) return <p class="quiet">Nothing was used in the last 30 days.</p>
  return (
    <figure class="days" aria-label="Billed GPU hours by day">
      <ol>
        {rows.map((r) => (
          <li key={r.day} title={`${r.day}: ${hours(r.billedHours)}`}>
            <span class="unseen">
              {r.day}: {hours(r.billedHours)}
            </span>
            <span class="fill" aria-hidden="true" style={{ height: (100 * r.billedHours) / most + '%' }} />
          </li>
        ))}
      </ol>
      <figcaption>
        Billed GPU hours by day (UTC), {rows[0]?.day} to {rows.at(-1)?.day}: {hours(props.report.total.billedHours)}
      </figcaption>
    </figure>
  )
}
