// SPDX-License-Identifier: BSD-2-Clause
/*
 * Gated copies: what they copy; that a closed gate stops them; and that a process which is stopped
 * anywhere in such a copy stores no further byte if the gate was closed meanwhile.
 */
#include "soft/gate.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "peer.h"

#define SPAN 65536u
#define STOPS 100
#define RUNNING "running\n" /* /proc/PID/syscall of a process that is not stopped */
/* each stop takes some time slices of both processes, which are long on a busy machine */
#define STORM_LIMIT_S 300

/* Shared with the process that copies. */
struct board {
	_Atomic uint32_t gate;
	_Atomic uint32_t passes; /* copies that the gate let through */
	_Atomic uint32_t turned_away;
	_Alignas(64) uint8_t target[SPAN];
};

typedef bool (*copy_fn)(struct board *board, const uint8_t *source);

static bool copy_long(struct board *board, const uint8_t *source)
{
	return soft_gate_copy(&board->gate, board->target, source, SPAN);
}

static bool copy_short(struct board *board, const uint8_t *source)
{
	return soft_gate_copy(&board->gate, board->target, source, 1000);
}

static bool copy_word(struct board *board, const uint8_t *source)
{
	return soft_gate_store(&board->gate, board->target, source, 8);
}

static bool copy_by_kernel(struct board *board, const uint8_t *source)
{
	const struct iovec from = {(void *)(uintptr_t)source, 64}, to = {board->target, 64};
	ssize_t n = 0;

	return soft_gate_vm(&board->gate, true, getpid(), &from, 1, &to, 1, &n) && n == 64;
}

static struct board *make_board(void)
{
	struct board *board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE,
				   MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(board, MAP_FAILED);
	return board;
}

/* --- what is copied --- */

static void gate_copy__every_alignment_and_length__exact(void **state)
{
	static const size_t lengths[] = {0,  1,	 2,  7,	  8,	9,    15,   16,
					 17, 31, 33, 255, 2047, 2048, 2049, 4001};
	struct board *board = make_board();
	uint8_t source[4100];

	(void)state;
	for (size_t i = 0; i < sizeof(source); i++)
		source[i] = (uint8_t)(i % 251 + 1);
	for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
		for (size_t shift = 0; shift < 17; shift++) {
			const size_t len = lengths[i];
			uint8_t *target = board->target + 64 + shift;

			memset(board->target, 0, 8192);
			assert_true(soft_gate_copy(&board->gate, target, source + shift / 2, len));
			assert_memory_equal(target, source + shift / 2, len);
			assert_int_equal(target[-1], 0);
			assert_int_equal(target[len], 0);
		}
	}
	munmap(board, sizeof(*board));
}

static void gate_store__each_size__that_many_bytes(void **state)
{
	static const uint8_t source[8] = {1, 2, 3, 4, 5, 6, 7, 8};
	struct board *board = make_board();

	(void)state;
	for (size_t size = 1; size <= 8; size *= 2) {
		memset(board->target, 0, 16);
		assert_true(soft_gate_store(&board->gate, board->target, source, size));
		assert_memory_equal(board->target, source, size);
		assert_int_equal(board->target[size], 0);
	}
	munmap(board, sizeof(*board));
}

static void gate_vm__both_directions__as_the_call(void **state)
{
	struct board *board = make_board();
	char here[] = "here it is", there[sizeof(here)] = "";
	const struct iovec local = {here, sizeof(here)}, remote = {there, sizeof(there)};
	ssize_t n = 0;

	(void)state;
	ABILITY_NEED_VM_CALLS();
	assert_true(soft_gate_vm(&board->gate, true, getpid(), &local, 1, &remote, 1, &n));
	assert_int_equal(n, sizeof(here));
	assert_string_equal(there, "here it is");
	memset(here, 'x', 4);
	assert_true(soft_gate_vm(&board->gate, false, getpid(), &local, 1, &remote, 1, &n));
	assert_int_equal(n, sizeof(here));
	assert_string_equal(here, "here it is");
	const struct iovec nowhere = {(void *)8, 8};

	assert_true(soft_gate_vm(&board->gate, true, getpid(), &local, 1, &nowhere, 1, &n));
	assert_int_equal(n, -EFAULT);
	munmap(board, sizeof(*board));
}

static void gate__closed__nothing_is_stored(void **state)
{
	static const copy_fn ways[] = {copy_long, copy_short, copy_word, copy_by_kernel};
	struct board *board = make_board();
	uint8_t *source = malloc(SPAN);

	(void)state;
	assert_non_null(source);
	memset(source, 7, SPAN);
	atomic_store(&board->gate, 1);
	for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++)
		assert_false(ways[i](board, source));
	for (size_t i = 0; i < SPAN; i++)
		assert_int_equal(board->target[i], 0);
	free(source);
	munmap(board, sizeof(*board));
}

/* --- a stopped process --- */

struct storm {
	struct board *board;
	copy_fn copy;
};

/* Copies for ever, different bytes each time; waits while the gate is closed. */
static int copy_for_ever(int channel, void *argument)
{
	struct storm *storm = argument;
	struct board *board = storm->board;
	uint8_t *sources = malloc(2 * SPAN);
	uint32_t turn;

	(void)channel;
	PEER_CHECK(sources != NULL);
	alarm(STORM_LIMIT_S);
	for (turn = 0; turn < 2; turn++)
		memset(sources + turn * SPAN, (int)turn + 1, SPAN);
	for (turn = 0;; turn = !turn) {
		if (storm->copy(board, sources + turn * SPAN)) {
			atomic_fetch_add(&board->passes, 1);
			continue;
		}
		atomic_fetch_add(&board->turned_away, 1);
		while (atomic_load(&board->gate))
			sched_yield();
	}
	return 0;
}

static void await_change(_Atomic uint32_t *word, uint32_t seen)
{
	while (atomic_load(word) == seen)
		sched_yield();
}

/*
 * waitpid reports a process that is about to stop and has not left its processor yet. If it is
 * continued at this moment, its kernel does not notice that the sequence was interrupted. Reading
 * this file waits until the process has left its processor.
 */
static void await_off_processor(pid_t pid)
{
	char path[64], text[16];
	ssize_t size;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/syscall", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	do
		size = pread(fd, text, sizeof(text), 0);
	while (size == sizeof(RUNNING) - 1 && !memcmp(text, RUNNING, sizeof(RUNNING) - 1));
	assert_true(size > 0);
	close(fd);
}

static void stop_and_close_again_and_again(copy_fn copy)
{
	struct storm storm = {make_board(), copy};
	struct board *board = storm.board;
	uint8_t *snapshot = malloc(SPAN);
	struct peer peer = peer_start(copy_for_ever, &storm);
	int status;

	assert_non_null(snapshot);
	for (int i = 0; i < STOPS; i++) {
		await_change(&board->passes, atomic_load(&board->passes));
		assert_int_equal(kill(peer.pid, SIGSTOP), 0);
		assert_int_equal(waitpid(peer.pid, &status, WUNTRACED), peer.pid);
		assert_true(WIFSTOPPED(status));
		await_off_processor(peer.pid);
		atomic_store(&board->gate, 1);
		memcpy(snapshot, board->target, SPAN);
		const uint32_t turned_away = atomic_load(&board->turned_away);

		assert_int_equal(kill(peer.pid, SIGCONT), 0);
		await_change(&board->turned_away, turned_away);
		assert_memory_equal(snapshot, board->target, SPAN);
		atomic_store(&board->gate, 0);
	}
	kill(peer.pid, SIGKILL);
	assert_int_equal(waitpid(peer.pid, &status, 0), peer.pid);
	close(peer.channel);
	free(snapshot);
	munmap(board, sizeof(*board));
}

/* LMR-FREE-21 IA-CLOSE-26 */
static void gate__closed_while_stopped__no_byte_changes(void **state)
{
	(void)state;
	if (!soft_gate_is_restartable())
		skip();
	stop_and_close_again_and_again(copy_long);
	stop_and_close_again_and_again(copy_short);
	stop_and_close_again_and_again(copy_word);
	stop_and_close_again_and_again(copy_by_kernel);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gate_copy__every_alignment_and_length__exact),
		cmocka_unit_test(gate_store__each_size__that_many_bytes),
		cmocka_unit_test(gate_vm__both_directions__as_the_call),
		cmocka_unit_test(gate__closed__nothing_is_stored),
		cmocka_unit_test(gate__closed_while_stopped__no_byte_changes),
	};

	return cmocka_run_group_tests_name("soft gate", tests, NULL, NULL);
}
