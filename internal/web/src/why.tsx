import { useEffect, useState } from 'preact/hooks'
import { Advice } from './advice'
import type * as api from './api'
import { Trouble } from './dialog'
import { read } from './http'
import { Link } from './route'
import { Time, bytes, sentence } from './words'

// Why says why a job waits, when it starts by the plan, and what would start it
// sooner, in the words of `gqueue explain`.
export function Why(props: { id: string; version: number; done: () => void }) {
  const [why, tell] = useState<api.Explanation>()
  const [failed, fail] = useState<unknown>()
  useEffect(() => {
    const end = new AbortController()
    read<api.Explanation>(`/v1/jobs/${encodeURIComponent(props.id)}/explain`, end.signal).then(tell, (e) => end.signal.aborted || fail(e))
    return () => end.abort()
  }, [props.id, props.version])
  if (!why) return <Trouble of={failed} />
  return (
    <section class="why" aria-label="Why it waits">
      <h2>Why it waits</h2>
      <ul>
        {(why.reasons ?? []).map((r) => (
          <li key={r.code + r.text}>
            {sentence(r.text)}
            {r.at && (
              <>
                {' '}
                (until <Time at={r.at} />)
              </>
            )}
          </li>
        ))}
      </ul>
      <p>
        {why.estimate && (
          <>
            {sentence(why.estimate.text)}
            {why.estimate.at && (
              <>
                {' '}
                (<Time at={why.estimate.at} />)
              </>
            )}
            .{' '}
          </>
        )}
        {why.position ? `It is number ${why.position} of ${why.numQueued} in the queue. ` : ''}
        {(why.before ?? []).length > 0 && (
          <>
            Before it on nodes that it could use:{' '}
            {why.before!.map((n, i) => (
              <>
                {i > 0 && ', '}
                <Link to={'/jobs/' + n}>{n}</Link>
              </>
            ))}
            {(why.nBefore ?? 0) > why.before!.length && ` and ${why.nBefore! - why.before!.length} more`}.
          </>
        )}
      </p>
      {(why.advice ?? []).length > 0 && <Advice id={props.id} list={why.advice!} done={props.done} />}
      {(why.nodes ?? []).length > 0 && (
        <details>
          <summary>What each node has free</summary>
          <div class="sideways" tabIndex={0} role="region" aria-label="What each node has free">
            <table class="plain">
              <thead>
                <tr>
                  <th>Node</th>
                  <th class="number">GPUs</th>
                  <th class="number">CPUs</th>
                  <th class="number">Memory</th>
                  <th>Why not</th>
                </tr>
              </thead>
              <tbody>
                {why.nodes!.map((n) => (
                  <tr key={n.node}>
                    <td>{n.node}</td>
                    <td class="number">{n.freeGpus}</td>
                    <td class="number">{n.freeCpus}</td>
                    <td class="number">{bytes(n.freeMemBytes)}</td>
                    <td>{n.text}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        </details>
      )}
    </section>
  )
}
