import { useEffect } from 'preact/hooks'
import type * as api from './api'
import { useRead } from './ask'
import { Trouble } from './dialog'
import { Fact } from './facts'
import { Time, bytes } from './words'

// Health is how the controller fares.
export function Health() {
  const { answer: d, failed, load } = useRead<api.Diagnosis>('/v1/diag')
  useEffect(() => {
    const timer = setInterval(() => document.hidden || load(), 10_000)
    return () => clearInterval(timer)
  }, [load])
  if (!d) return <Trouble of={failed} />
  const length = (t: api.Timing) => (t.count ? `${t.p50Ms.toFixed(1)} ms, ${t.p99Ms.toFixed(1)} ms for one in a hundred` : 'none yet')
  return (
    <>
      <Trouble of={failed} />
      <dl class="facts">
        <Fact name="Version">{d.version}</Fact>
        <Fact name="Started">
          <Time at={d.started} />
        </Fact>
        <Fact name="Waiting">{d.waiting}</Fact>
        <Fact name="Running">{d.running}</Fact>
        <Fact name="Requests that wait">{`${d.inbox} of at most ${d.inboxSize}`}</Fact>
        <Fact name="Open streams">{d.streams}</Fact>
        <Fact name="Disk">{`${bytes(d.diskFreeBytes)} free; no jobs are taken below ${bytes(d.diskReserveBytes)}`}</Fact>
        <Fact name="Store">{bytes(d.storeBytes)}</Fact>
        <Fact name="Heap">{bytes(d.heapBytes)}</Fact>
        <Fact name="Answers">{length(d.turns)}</Fact>
        <Fact name="Commits">{length(d.commits)}</Fact>
        <Fact name="Rounds">{length(d.rounds)}</Fact>
        <Fact name="Rounds cut short">{d.truncated}</Fact>
        <Fact name="Started past a promise">{`${d.backfilled} of ${d.starts}`}</Fact>
      </dl>
      <div class="sideways" tabIndex={0} role="region" aria-label="Routes">
        <table class="plain">
          <thead>
            <tr>
              <th>Route</th>
              <th class="number">Requests</th>
              <th class="number">Median</th>
              <th class="number">1 in 100</th>
              <th class="number">Refused</th>
              <th class="number">Failed</th>
            </tr>
          </thead>
          <tbody>
            {(d.routes ?? []).map((r) => (
              <tr key={r.route}>
                <td>{r.route}</td>
                <td class="number">{r.count}</td>
                <td class="number">{r.p50Ms.toFixed(1)} ms</td>
                <td class="number">{r.p99Ms.toFixed(1)} ms</td>
                <td class="number">{r.refused || ''}</td>
                <td class="number">{r.failed || ''}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  )
}
