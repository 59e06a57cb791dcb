import { useState } from 'preact/hooks'
import type * as api from './api'
import { update } from './change'
import { Dialog, Trouble } from './dialog'
import { Link } from './route'
import { duration } from './words'

// Advice is what would let a job start sooner. What an update can change is changed
// here, after a question; for the rest the form opens with the changed document.
export function Advice(props: { id: string; list: api.Advice[]; done: () => void }) {
  const [asked, ask] = useState<api.Advice>()
  return (
    <>
      <h3>What would help</h3>
      <ul>
        {props.list.map((a) => (
          <li key={a.change}>
            <b>{a.change}</b>: {a.text}{' '}
            {a.limitS ? (
              <button type="button" class="link" onClick={() => ask(a)}>
                Do it
              </button>
            ) : (
              a.resources && <Link to={`/submit?again=${encodeURIComponent(props.id)}&with=${encodeURIComponent(JSON.stringify(a.resources))}`}>Submit that instead</Link>
            )}
          </li>
        ))}
      </ul>
      {asked && <Limit id={props.id} seconds={asked.limitS!} leave={() => ask(undefined)} done={props.done} />}
    </>
  )
}

function Limit(props: { id: string; seconds: number; leave: () => void; done: () => void }) {
  const [busy, work] = useState(false)
  const [failed, fail] = useState<unknown>()
  const act = async () => {
    work(true)
    try {
      await update(props.id, { limitS: props.seconds })
      props.leave()
      props.done()
    } catch (e) {
      fail(e)
    }
    work(false)
  }
  return (
    <Dialog title="Limit its run time?" yes="Limit it" busy={busy} onYes={act} onNo={props.leave}>
      <p>Job {props.id} keeps its place in the queue, and is ended when it has run for {duration(props.seconds)}. Only operators can raise the limit again.</p>
      <Trouble of={failed} />
    </Dialog>
  )
}

// advised are the resources that advice gives to a document that is submitted in
// place of another one; nothing: the address names none that can be read.
export function advised(query: URLSearchParams): api.Advised | undefined {
  try {
    const of: unknown = JSON.parse(query.get('with') ?? 'null')
    return of && typeof of === 'object' && !Array.isArray(of) ? (of as api.Advised) : undefined
  } catch {
    return undefined
  }
}
