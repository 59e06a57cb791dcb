import { useEffect, useState } from 'preact/hooks'
import { advised } from './advice'
import type * as api from './api'
import { useLate } from './ask'
import { pathAt } from './caret'
import { Conversion, useConvert } from './convert'
import { Trouble } from './dialog'
import { forget, keep, kept } from './draft'
import { All, At, Text, useFields } from './fields'
import { Failure, change, read } from './http'
import { go, usePlace } from './route'
import { whose } from './session'
import { waits } from './states'
import { Time, sentence } from './words'

// Fields are what the form asks for; the document has all else.
interface Fields {
  name: string
  image: string
  command: string
  gpus: number
  cpus: number
  memory: number // GiB
  hours: number
}

// Document is a job document as far as the form touches it.
interface Document {
  name?: string
  request?: {
    resources?: { gpus?: unknown; cpus?: number; cpuMemoryGb?: number }
    docker?: { image?: string; command?: string | string[] }
    scheduling?: { maxDuration?: string }
  }
}

const example: Document = {
  name: 'first',
  request: {
    resources: { gpus: 1, cpus: 2, cpuMemoryGb: 4 },
    docker: { image: 'debian:12', command: 'echo hello from $HOSTNAME' },
    scheduling: { maxDuration: '1 hour' },
  },
}

// Submit is a job document as a form and as text: two views of the same.
export function Submit() {
  const me = whose.get() ?? ''
  const query = usePlace().query
  const again = query.get('again')
  const instead = advised(query)
  const [text, setText] = useState(() => kept(me) ?? JSON.stringify(example, null, 2))
  const [checked, setChecked] = useState<api.SubmitResponse>()
  const [failed, fail] = useState<unknown>()
  const [warned, warn] = useState<unknown>()
  const [busy, work] = useState(false)
  const [replaced, replace] = useState<string>() // the job that is cancelled for this one
  const [caret, setCaret] = useState(0)
  const described = useFields()
  useEffect(() => keep(me, text), [text])
  useEffect(() => {
    if (!again) return
    read<api.JobDetail>('/v1/jobs/' + encodeURIComponent(again)).then((j) => {
      if (!j.spec) return
      const spec = j.spec as Document
      if (instead) (spec.request ??= {}).resources = { ...spec.request.resources, ...instead }
      replace(instead && waits(j) ? j.id : undefined)
      setText(JSON.stringify(spec, null, 2))
    }, fail)
  }, [again])
  const look = (e: Event) => setCaret((e.currentTarget as HTMLTextAreaElement).selectionStart)
  const file = useConvert((text) => (setText(text), setChecked(undefined)), fail)
  const document = parsed(text)
  const edit = (change: (d: Document) => void) => {
    if (!document) return
    change(document)
    setText(JSON.stringify(document, null, 2))
    setChecked(undefined)
  }
  // What is typed is tried by itself when nobody types any more. What is wrong with it is
  // told by then as well, and not called out: it may be half of a word.
  const late = useLate(text, 700)
  useEffect(() => {
    const typed = parsed(late)
    if (!typed) return
    let old = false
    change<api.SubmitResponse>('POST', '/v1/jobs', { job: typed, dryRun: true }).then(
      (answer) => old || (setChecked(answer), warn(undefined)),
      (e) => old || warn(e instanceof Failure ? e : undefined),
    )
    return () => void (old = true)
  }, [late])
  const send = async (dryRun: boolean) => {
    work(true)
    fail(undefined)
    warn(undefined)
    setChecked(undefined)
    try {
      if (!document) throw new Error('This is not JSON.')
      const key = { 'Idempotency-Key': crypto.randomUUID() } // a double click is one job
      const answer = await change<api.SubmitResponse>('POST', '/v1/jobs', { job: document, dryRun }, dryRun ? {} : key)
      if (dryRun) setChecked(answer)
      else {
        forget()
        const left = replaced && (await cancel(replaced))
        if (left) fail(new Error(`Job ${answer.number} is submitted. Job ${replaced} was not cancelled: ${left}`))
        else go('/jobs/' + answer.number)
      }
    } catch (e) {
      fail(e)
    }
    work(false)
  }
  return (
    <>
      <div class="bar">
        <h1>Submit</h1>
        <button type="button" disabled={busy} onClick={() => send(true)}>
          Check
        </button>
        <button type="button" class="main" disabled={busy} onClick={() => send(false)}>
          Submit
        </button>
      </div>
      <Trouble of={failed} />
      {!failed && <Trouble of={warned} quiet />}
      {checked && <Checked answer={checked} />}
      {file.done && <Conversion of={file.done} back={file.back} />}
      {again && instead && (
        <label class="check">
          <input type="checkbox" checked={replaced !== undefined} onChange={(e) => replace(e.currentTarget.checked ? again : undefined)} />
          <span>cancel job {again} when this one is taken, which begins at the end of the queue</span>
        </label>
      )}
      <div class="two">
        {document ? <Form fields={fieldsOf(document)} edit={edit} help={(path) => described.get(path)?.meaning ?? ''} /> : <NotJSON text={text} convert={() => file.convert(text)} />}
        <div class="text">
          <At path={pathAt(text, caret)} fields={described} />
          <label for="document">Job document, or a job file of another system</label>
          <input type="file" aria-label="Open a job file" onChange={(e) => void file.open(e.currentTarget.files?.[0])} />
          <textarea
            id="document"
            onDragOver={(e: DragEvent) => e.preventDefault()}
            onDrop={(e: DragEvent) => {
              const dropped = e.dataTransfer?.files[0]
              if (!dropped) return
              e.preventDefault()
              void file.open(dropped)
            }}
            onPaste={(e: ClipboardEvent) => {
              const area = e.currentTarget as HTMLTextAreaElement
              const pasted = e.clipboardData?.getData('text/plain') ?? ''
              if (!pasted || area.selectionEnd - area.selectionStart < area.value.length) return // into what is there
              e.preventDefault()
              void file.convert(pasted)
            }}
            spellcheck={false}
            value={text}
            onInput={(e) => {
              setText(e.currentTarget.value)
              setChecked(undefined)
            }}
            onKeyUp={look}
            onClick={look}
          />
          <All fields={described} />
        </div>
      </div>
    </>
  )
}

// cancel cancels a job, or says why it was not.
async function cancel(id: string): Promise<string | undefined> {
  try {
    const answer = await change<api.ActionResponse>('POST', '/v1/jobs/actions/cancel', { ids: [id] })
    return answer.results?.find((r) => r.error)?.error?.message
  } catch (e) {
    return (e as Error).message
  }
}

function NotJSON(props: { text: string; convert: () => void }) {
  return (
    <div class="reason bad">
      <p>The text is not JSON: {problem(props.text)}</p>
      <button type="button" onClick={props.convert}>
        Convert a file of another system
      </button>
    </div>
  )
}

function Checked(props: { answer: api.SubmitResponse }) {
  const { estimate, notes, project } = props.answer
  return (
    <div class="reason" role="status">
      <p>
        It would be taken, for project {project}.{' '}
        {estimate && (
          <>
            {sentence(estimate.text)}
            {estimate.at && (
              <>
                {' '}
                (<Time at={estimate.at} />)
              </>
            )}
          </>
        )}
      </p>
      <ul>
        {(notes ?? []).map((n) => (
          <li key={n.path + n.message}>
            <code>{n.path}</code> {n.message}
          </li>
        ))}
      </ul>
    </div>
  )
}

function Form(props: { fields: Fields; edit: (change: (d: Document) => void) => void; help: (path: string) => string }) {
  const f = props.fields
  const { edit, help } = props
  const request = (d: Document) => (d.request ??= {})
  const told = (path: string) => (
    <small>
      <Text of={help(path)} />
    </small>
  )
  const number = (label: string, value: number, path: string, set: (d: Document, n: number) => void) => (
    <label>
      <span>{label}</span>
      <input type="number" min="0" step="any" value={value || ''} onInput={(e) => edit((d) => set(d, Number(e.currentTarget.value)))} />
      {told(path)}
    </label>
  )
  return (
    <form class="fields" onSubmit={(e: Event) => e.preventDefault()}>
      <label>
        <span>Name</span>
        <input value={f.name} onInput={(e) => edit((d) => void (d.name = e.currentTarget.value))} />
        {told('name')}
      </label>
      <label>
        <span>Image</span>
        <input value={f.image} onInput={(e) => edit((d) => void ((request(d).docker ??= {}).image = e.currentTarget.value))} />
        {told('request.docker.image')}
      </label>
      <label>
        <span>Command</span>
        <input value={f.command} onInput={(e) => edit((d) => void ((request(d).docker ??= {}).command = e.currentTarget.value || undefined))} />
        {told('request.docker.command')}
      </label>
      {number('GPUs', f.gpus, 'request.resources.gpus', (d, n) => void ((request(d).resources ??= {}).gpus = n))}
      {number('CPUs', f.cpus, 'request.resources.cpus', (d, n) => void ((request(d).resources ??= {}).cpus = n))}
      {number('Memory, GiB', f.memory, 'request.resources.cpuMemoryGb', (d, n) => void ((request(d).resources ??= {}).cpuMemoryGb = n))}
      {number('Time limit, hours', f.hours, 'request.scheduling.maxDuration', (d, n) => void ((request(d).scheduling ??= {}).maxDuration = n ? `${n} hours` : undefined))}
    </form>
  )
}

function fieldsOf(d: Document): Fields {
  const { resources, docker, scheduling } = d.request ?? {}
  const command = docker?.command
  return {
    name: d.name ?? '',
    image: docker?.image ?? '',
    command: Array.isArray(command) ? command.join(' ') : (command ?? ''),
    gpus: typeof resources?.gpus === 'number' ? resources.gpus : 0,
    cpus: resources?.cpus ?? 0,
    memory: resources?.cpuMemoryGb ?? 0,
    hours: Number(/^([\d.]+) hours?$/.exec(scheduling?.maxDuration ?? '')?.[1] ?? 0),
  }
}

function parsed(text: string): Document | undefined {
  try {
    const d: unknown = JSON.parse(text)
    return d && typeof d === 'object' && !Array.isArray(d) ? (d as Document) : undefined
  } catch {
    return undefined
  }
}

function problem(text: string): string {
  try {
    JSON.parse(text)
    return 'a document begins with {'
  } catch (e) {
    return (e as Error).message
  }
}
