// Package cabi is the C ABI as Go functions: numbers and text in, a status and text out. It decides nothing.
//
// Text goes in without a copy, since the library reads it during the call only and keeps no pointer. Text comes out as a
// slice that Go owns; it is empty for every status that carries none. Nothing here touches errors of the thread, so no
// goroutine needs to be locked to an OS thread.
package cabi

/*
#include <fawn.h>

// The out-parameters below do not outlive the call, so they may stay on the goroutine's stack.
#cgo noescape fawn_describe
#cgo noescape fawn_buf_free
#cgo noescape fawn_reduce
#cgo noescape fawn_messages_convert
#cgo noescape fawn_descriptor_diff
#cgo noescape fawn_descriptor_diagram
#cgo noescape fawn_runtime_new
#cgo noescape fawn_runtime_submit
#cgo noescape fawn_runtime_stats
#cgo noescape fawn_runtime_shutdown
#cgo noescape fawn_subagents_new
#cgo noescape fawn_subagents_start
#cgo noescape fawn_subagents_stop
#cgo noescape fawn_subagents_stats
#cgo noescape fawn_assembly_new
#cgo noescape fawn_assembly_descriptor
#cgo noescape fawn_thread_open
#cgo noescape fawn_thread_update
#cgo noescape fawn_thread_state
#cgo noescape fawn_thread_history
#cgo noescape fawn_thread_goal
#cgo noescape fawn_queue_new
#cgo noescape fawn_queue_take
#cgo noescape fawn_run_start
#cgo noescape fawn_run_submit
#cgo noescape fawn_run_wait
#cgo noescape fawn_call_emit
#cgo noescape fawn_call_finish
// None of these can make a queue's wake-up function run, so they never call back into Go. (All others might.)
#cgo nocallback fawn_abi_version
#cgo nocallback fawn_version
#cgo nocallback fawn_status_name
#cgo nocallback fawn_describe
#cgo nocallback fawn_buf_free
#cgo nocallback fawn_reduce
#cgo nocallback fawn_messages_convert
#cgo nocallback fawn_descriptor_diff
#cgo nocallback fawn_descriptor_diagram
*/
import "C"

import "unsafe"

// Outcomes that are no errors.
const (
	OK          = C.FAWN_OK
	Timeout     = C.FAWN_TIMEOUT
	Closed      = C.FAWN_CLOSED
	Interrupted = C.FAWN_INTERRUPTED
	Gone        = C.FAWN_GONE
)

// in gives a text as the pointer and length that the library wants. The text must stay alive over the call.
func in(text string) (*C.char, C.size_t) {
	return (*C.char)(unsafe.Pointer(unsafe.StringData(text))), C.size_t(len(text))
}

// out takes the text out of a buffer and frees it.
func out(buf *C.fawn_buf) []byte {
	if buf.data == nil {
		return nil
	}
	text := make([]byte, buf.len)
	copy(text, unsafe.Slice((*byte)(unsafe.Pointer(buf.data)), buf.len))
	C.fawn_buf_free(buf)
	return text
}

// ABIVersion is fawn_abi_version.
func ABIVersion() uint32 { return uint32(C.fawn_abi_version()) }

// Version is fawn_version.
func Version() string { return C.GoString(C.fawn_version()) }

// StatusName is fawn_status_name.
func StatusName(status int32) string { return C.GoString(C.fawn_status_name(C.int32_t(status))) }

// Describe is fawn_describe.
func Describe(what string) (int32, []byte) {
	var buf C.fawn_buf
	p, n := in(what)
	status := C.fawn_describe(p, n, &buf)
	return int32(status), out(&buf)
}

// Reduce is fawn_reduce.
func Reduce(channel, json string) (int32, []byte) {
	var buf C.fawn_buf
	cp, cn := in(channel)
	p, n := in(json)
	status := C.fawn_reduce(cp, cn, p, n, &buf)
	return int32(status), out(&buf)
}

// MessagesConvert is fawn_messages_convert.
func MessagesConvert(json string) (int32, []byte) {
	var buf C.fawn_buf
	p, n := in(json)
	status := C.fawn_messages_convert(p, n, &buf)
	return int32(status), out(&buf)
}

// DescriptorDiff is fawn_descriptor_diff.
func DescriptorDiff(json string) (int32, []byte) {
	var buf C.fawn_buf
	p, n := in(json)
	status := C.fawn_descriptor_diff(p, n, &buf)
	return int32(status), out(&buf)
}

// DescriptorDiagram is fawn_descriptor_diagram.
func DescriptorDiagram(json string) (int32, []byte) {
	var buf C.fawn_buf
	p, n := in(json)
	status := C.fawn_descriptor_diagram(p, n, &buf)
	return int32(status), out(&buf)
}

// RuntimeNew is fawn_runtime_new.
func RuntimeNew(json string) (uint64, int32, []byte) {
	var buf C.fawn_buf
	var handle C.fawn_runtime
	p, n := in(json)
	status := C.fawn_runtime_new(C.FAWN_ABI_VERSION, p, n, &handle, &buf)
	return uint64(handle), int32(status), out(&buf)
}

// RuntimeSubmit is fawn_runtime_submit.
func RuntimeSubmit(runtime uint64, json string) (int32, []byte) {
	var buf C.fawn_buf
	p, n := in(json)
	status := C.fawn_runtime_submit(C.fawn_runtime(runtime), p, n, &buf)
	return int32(status), out(&buf)
}

// RuntimeStats is fawn_runtime_stats.
func RuntimeStats(runtime uint64) (int32, []byte) {
	var buf C.fawn_buf
	status := C.fawn_runtime_stats(C.fawn_runtime(runtime), &buf)
	return int32(status), out(&buf)
}

// RuntimeShutdown is fawn_runtime_shutdown.
func RuntimeShutdown(runtime uint64, timeoutMS int64) (int32, []byte) {
	var buf C.fawn_buf
	status := C.fawn_runtime_shutdown(C.fawn_runtime(runtime), C.int64_t(timeoutMS), &buf)
	return int32(status), out(&buf)
}

// RuntimeFree is fawn_runtime_free.
func RuntimeFree(runtime uint64) { C.fawn_runtime_free(C.fawn_runtime(runtime)) }

// SubagentsNew is fawn_subagents_new.
func SubagentsNew(runtime uint64, json string) (uint64, int32, []byte) {
	var buf C.fawn_buf
	var handle C.fawn_subagents
	p, n := in(json)
	status := C.fawn_subagents_new(C.fawn_runtime(runtime), p, n, &handle, &buf)
	return uint64(handle), int32(status), out(&buf)
}

// SubagentsStart is fawn_subagents_start.
func SubagentsStart(subagents uint64) (int32, []byte) {
	var buf C.fawn_buf
	status := C.fawn_subagents_start(C.fawn_subagents(subagents), &buf)
	return int32(status), out(&buf)
}

// SubagentsStop is fawn_subagents_stop.
func SubagentsStop(subagents uint64, timeoutMS int64) (int32, []byte) {
	var buf C.fawn_buf
	status := C.fawn_subagents_stop(C.fawn_subagents(subagents), C.int64_t(timeoutMS), &buf)
	return int32(status), out(&buf)
}

// SubagentsStats is fawn_subagents_stats.
func SubagentsStats(subagents uint64) (int32, []byte) {
	var buf C.fawn_buf
	status := C.fawn_subagents_stats(C.fawn_subagents(subagents), &buf)
	return int32(status), out(&buf)
}

// SubagentsFree is fawn_subagents_free.
func SubagentsFree(subagents uint64) { C.fawn_subagents_free(C.fawn_subagents(subagents)) }

// AssemblyNew is fawn_assembly_new.
func AssemblyNew(runtime uint64, json string) (uint64, int32, []byte) {
	var buf C.fawn_buf
	var handle C.fawn_assembly
	p, n := in(json)
	status := C.fawn_assembly_new(C.fawn_runtime(runtime), p, n, &handle, &buf)
	return uint64(handle), int32(status), out(&buf)
}

// AssemblyDescriptor is fawn_assembly_descriptor.
func AssemblyDescriptor(assembly uint64) (int32, []byte) {
	var buf C.fawn_buf
	status := C.fawn_assembly_descriptor(C.fawn_assembly(assembly), &buf)
	return int32(status), out(&buf)
}

// AssemblyFree is fawn_assembly_free.
func AssemblyFree(assembly uint64) { C.fawn_assembly_free(C.fawn_assembly(assembly)) }

// ThreadOpen is fawn_thread_open.
func ThreadOpen(runtime uint64, json string) (uint64, int32, []byte) {
	var buf C.fawn_buf
	var handle C.fawn_thread
	p, n := in(json)
	status := C.fawn_thread_open(C.fawn_runtime(runtime), p, n, &handle, &buf)
	return uint64(handle), int32(status), out(&buf)
}

// ThreadUpdate is fawn_thread_update.
func ThreadUpdate(thread uint64, json string) (int32, []byte) {
	var buf C.fawn_buf
	p, n := in(json)
	status := C.fawn_thread_update(C.fawn_thread(thread), p, n, &buf)
	return int32(status), out(&buf)
}

// ThreadState is fawn_thread_state.
func ThreadState(thread uint64, json string) (int32, []byte) {
	var buf C.fawn_buf
	p, n := in(json)
	status := C.fawn_thread_state(C.fawn_thread(thread), p, n, &buf)
	return int32(status), out(&buf)
}

// ThreadHistory is fawn_thread_history.
func ThreadHistory(thread uint64, json string) (int32, []byte) {
	var buf C.fawn_buf
	p, n := in(json)
	status := C.fawn_thread_history(C.fawn_thread(thread), p, n, &buf)
	return int32(status), out(&buf)
}

// ThreadGoal is fawn_thread_goal.
func ThreadGoal(thread uint64, json string) (int32, []byte) {
	var buf C.fawn_buf
	p, n := in(json)
	status := C.fawn_thread_goal(C.fawn_thread(thread), p, n, &buf)
	return int32(status), out(&buf)
}

// ThreadFree is fawn_thread_free.
func ThreadFree(thread uint64) { C.fawn_thread_free(C.fawn_thread(thread)) }

// QueueNew is fawn_queue_new.
func QueueNew(runtime uint64, json string) (uint64, int32, []byte) {
	var buf C.fawn_buf
	var handle C.fawn_queue
	p, n := in(json)
	status := C.fawn_queue_new(C.fawn_runtime(runtime), p, n, &handle, &buf)
	return uint64(handle), int32(status), out(&buf)
}

// QueueTake is fawn_queue_take.
func QueueTake(queue uint64, timeoutMS int64, maxEvents uint32) (int32, []byte) {
	var buf C.fawn_buf
	status := C.fawn_queue_take(C.fawn_queue(queue), C.int64_t(timeoutMS), C.uint32_t(maxEvents), &buf)
	return int32(status), out(&buf)
}

// QueueInterrupt is fawn_queue_interrupt.
func QueueInterrupt(queue uint64) int32 { return int32(C.fawn_queue_interrupt(C.fawn_queue(queue))) }

// QueueFree is fawn_queue_free.
func QueueFree(queue uint64) { C.fawn_queue_free(C.fawn_queue(queue)) }

// RunStart is fawn_run_start.
func RunStart(assembly, thread, queue uint64, json string) (uint64, int32, []byte) {
	var buf C.fawn_buf
	var handle C.fawn_run
	p, n := in(json)
	status := C.fawn_run_start(C.fawn_assembly(assembly), C.fawn_thread(thread), C.fawn_queue(queue), p, n, &handle, &buf)
	return uint64(handle), int32(status), out(&buf)
}

// RunSubmit is fawn_run_submit.
func RunSubmit(run uint64, json string) (int32, []byte) {
	var buf C.fawn_buf
	p, n := in(json)
	status := C.fawn_run_submit(C.fawn_run(run), p, n, &buf)
	return int32(status), out(&buf)
}

// RunWait is fawn_run_wait.
func RunWait(run uint64, timeoutMS int64) (int32, []byte) {
	var buf C.fawn_buf
	status := C.fawn_run_wait(C.fawn_run(run), C.int64_t(timeoutMS), &buf)
	return int32(status), out(&buf)
}

// RunFree is fawn_run_free.
func RunFree(run uint64) { C.fawn_run_free(C.fawn_run(run)) }

// CallEmit is fawn_call_emit.
func CallEmit(runtime, call uint64, json string) (int32, []byte) {
	var buf C.fawn_buf
	p, n := in(json)
	status := C.fawn_call_emit(C.fawn_runtime(runtime), C.uint64_t(call), p, n, &buf)
	return int32(status), out(&buf)
}

// CallFinish is fawn_call_finish.
func CallFinish(runtime, call uint64, json string) (int32, []byte) {
	var buf C.fawn_buf
	p, n := in(json)
	status := C.fawn_call_finish(C.fawn_runtime(runtime), C.uint64_t(call), p, n, &buf)
	return int32(status), out(&buf)
}
