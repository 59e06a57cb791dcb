import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks'
import type * as api from './api'
import { Trouble } from './dialog'
import { ask, Away } from './http'
import { type Line, Output } from './output'
import { Ranks, useRank } from './ranks'
import { setQuery, usePlace } from './route'
import { over, waits } from './states'
import { useSight } from './virtual'

const lineHeight = 18

// Log is what a rank of a job prints, followed while it runs.
export function Log(props: { job: api.JobDetail }) {
  const { job } = props
  const { tried, tries, query } = useRank(job)
  const words = usePlace().query.get('find') ?? ''
  const path = `/v1/jobs/${encodeURIComponent(job.id)}/log?${query}`
  const log = useLog(path, !over(job) && !tried, waits(job) && tries === 0)
  const lines = useMemo(() => (words ? log.lines.filter((l) => l.text.toLowerCase().includes(words.toLowerCase())) : log.lines), [log.lines, words])
  return (
    <>
      <div class="bar">
        <Ranks job={job} />
        <label>
          <span>Find</span>
          <input type="search" value={words} onInput={(e) => setQuery({ find: e.currentTarget.value })} />
        </label>
        <p class="quiet" aria-live="polite">
          {words ? `${lines.length} of ${log.lines.length} lines` : log.said}
        </p>
        <a class="button" href={path} download={`${job.id}.log`}>
          Download
        </a>
      </div>
      <Trouble of={log.failed} />
      <Lines lines={lines} stay={words !== ''} />
    </>
  )
}

// useLog reads a log, to its end or for as long as it grows.
function useLog(path: string, follow: boolean, notYet: boolean) {
  const [shown, show] = useState<{ lines: Line[]; said: string; failed?: unknown }>({ lines: [], said: '' })
  useEffect(() => {
    if (notYet) return show({ lines: [], said: 'It has not begun.' })
    const end = new AbortController()
    const out = new Output()
    let timer = 0
    const tell = (said: string, failed?: unknown) => {
      clearTimeout(timer)
      timer = 0
      show({ lines: [...out.lines], said: said + (out.dropped ? `; ${out.dropped} earlier lines: download` : ''), failed })
    }
    const run = async () => {
      let offset = 0
      for (;;) {
        try {
          const answer = await ask(`${path}&offset=${offset}${follow ? '&follow=true' : ''}`, { signal: end.signal })
          const reader = answer.body!.getReader()
          for (let piece = await reader.read(); !piece.done; piece = await reader.read()) {
            offset += piece.value.length
            out.add(piece.value)
            timer ||= window.setTimeout(() => tell(follow ? 'follows' : 'reading …'), 100)
          }
          out.end()
          return tell('That is all.')
        } catch (e) {
          if (end.signal.aborted) return
          if (!(e instanceof Away || e instanceof TypeError)) return tell('', e)
          tell('The controller is away; it goes on when it is back.')
          await new Promise((again) => setTimeout(again, 1000))
        }
      }
    }
    void run()
    return () => {
      clearTimeout(timer)
      end.abort()
    }
  }, [path, follow, notYet])
  return shown
}

// Lines shows those in sight, and stays at the end unless the reader scrolled away
// or came by a link to a line.
function Lines(props: { lines: Line[]; stay: boolean }) {
  const { box, first, last, scrolled } = useSight({ lines: props.lines.length, height: lineHeight, more: 20 })
  const linked = Number(/^#L(\d+)$/.exec(location.hash)?.[1] ?? 0)
  const atEnd = useRef(!linked && !props.stay)
  useLayoutEffect(() => {
    const el = box.current!
    if (atEnd.current && !props.stay) el.scrollTop = el.scrollHeight
  }, [props.lines, props.stay])
  const first0 = props.lines[0]?.number ?? 1
  const ready = linked > 0 && props.lines.length >= linked - first0
  useLayoutEffect(() => {
    if (ready) box.current!.scrollTop = (linked - first0 - 3) * lineHeight
  }, [ready])
  return (
    <div
      class="log"
      ref={box}
      tabIndex={0}
      role="log"
      aria-label="Output"
      aria-live="off"
      onScroll={() => {
        const el = box.current!
        atEnd.current = el.scrollTop + el.clientHeight >= el.scrollHeight - lineHeight
        scrolled()
      }}
    >
      <div class="lines" style={{ height: props.lines.length * lineHeight + 'px' }}>
        <div style={{ transform: `translateY(${first * lineHeight}px)` }}>
          {props.lines.slice(first, last).map((l) => (
            <div key={l.number} class={l.number === linked ? 'line linked' : 'line'}>
              <a class="line-number" href={'#L' + l.number} id={'L' + l.number} tabIndex={-1}>
                {l.number}
              </a>
              {l.pieces.map((p, i) => (p.look ? <span key={i} class={p.look}>{p.text}</span> : p.text))}
            </div>
          ))}
        </div>
      </div>
    </div>
  )
}
