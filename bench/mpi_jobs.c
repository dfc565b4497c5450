// SPDX-License-Identifier: BSD-2-Clause
/* The tests of mpi, by messages whatever they travel over. */
#include "mpi.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "common.h"
#include "perf_clock.h"
#include "perf_pattern.h"

#define MPI_IDLE_PASSES 64u /* before it yields to others that share the processor */
#define MPI_LINE 64u	    /* bytes that a processor reads at once */
#define MPI_STEPS 64u	    /* of a computation between two looks at memory */

/* --- the contents of messages --- */

/* A number that differs between the messages of a job. */
static uint64_t pattern_of(unsigned from, unsigned to, uint64_t number)
{
	return (number * CREW_MAX + from) * CREW_MAX + to;
}

void mpi_fill(struct mpi *mpi, unsigned rank, uint64_t number)
{
	struct mpi_peer *peer = &mpi->peers[rank];

	if (mpi->setup->is_checked)
		perf_pattern_fill(peer->out_data, peer->out_size,
				  pattern_of(mpi->member->rank, rank, number));
}

/*
 * A program reads what it has received. A message that nobody reads would not leave the cache of
 * the processor that has copied it to its place.
 */
PERF_NO_TSAN static void read_message(const struct mpi_peer *peer)
{
	for (uint64_t i = 0; i < peer->in_size; i += MPI_LINE)
		(void)*(const volatile unsigned char *)(peer->in_data + i);
}

void mpi_verify(struct mpi *mpi, unsigned rank, uint64_t number)
{
	struct mpi_peer *peer = &mpi->peers[rank];

	read_message(peer);
	if (mpi->setup->is_checked && !perf_pattern_is(peer->in_data, peer->in_size,
						       pattern_of(rank, mpi->member->rank, number)))
		mpi->wrong++;
}

/* --- passes --- */

/* Messages of the next round may have come already. */
static bool is_done(const struct mpi_peer *peer)
{
	return peer->sent == peer->to_send && peer->received >= peer->to_recv;
}

/* Serves each peer once. Looks for completions now and then, or if a peer waits for them. */
static int pass(struct mpi *mpi, bool *is_done_out)
{
	bool is_blocked = false;
	int moved = 0;

	*is_done_out = true;
	for (unsigned i = 1; i < mpi->participants && moved >= 0; i++) {
		unsigned rank = (mpi->member->rank + i) % mpi->participants;
		int rc = mpi->setup->wire->step(mpi, rank);

		moved = rc < 0 ? rc : moved | rc;
		is_blocked |= mpi_is_blocked(&mpi->peers[rank]);
		*is_done_out &= is_done(&mpi->peers[rank]);
	}
	if (moved >= 0 && mpi->setup->wire->progress &&
	    (is_blocked || ++mpi->passes % MPI_PASSES == 0)) {
		int rc = mpi->setup->wire->progress(mpi);

		if (rc < 0)
			return rc;
	}
	return moved;
}

/* Until all messages that were asked for have been sent and received. */
static int finish(struct mpi *mpi)
{
	bool is_over = false;

	for (;;) {
		int moved = pass(mpi, &is_over);

		if (moved < 0 || is_over)
			return moved < 0 ? moved : 0;
		mpi->idle = moved ? 0 : mpi->idle + 1;
		if (mpi->participants > 2 && mpi->idle % MPI_IDLE_PASSES == MPI_IDLE_PASSES - 1)
			sched_yield();
		else if (!moved)
			crew_pause();
	}
}

/* --- the tests --- */

static int pingpong(struct mpi *mpi, const struct crew_job *job)
{
	struct mpi_peer *peer = &mpi->peers[!mpi->member->rank];
	bool is_leader = mpi->member->rank == 0;
	uint64_t since = perf_clock_ticks();
	int rc = 0;

	for (uint64_t i = 0; i < job->count && rc == 0; i++) {
		uint64_t now;

		peer->to_recv += !is_leader;
		peer->to_send += is_leader;
		rc = finish(mpi);
		peer->to_recv += is_leader;
		peer->to_send += !is_leader;
		if (rc == 0)
			rc = finish(mpi);
		now = perf_clock_ticks();
		if (is_leader)
			stats_add(&mpi->member->board->stats, now - since);
		since = now;
	}
	return rc;
}

static int stream(struct mpi *mpi, const struct crew_job *job)
{
	struct mpi_peer *peer = &mpi->peers[!mpi->member->rank];
	bool is_leader = mpi->member->rank == 0;
	uint64_t window = mpi_window(job->size);
	int rc = 0;

	if (is_leader)
		peer->in_size = MPI_ANSWER;
	else
		peer->out_size = MPI_ANSWER;
	for (uint64_t i = 0; i < job->count && rc == 0; i++) {
		*(is_leader ? &peer->to_send : &peer->to_recv) += window;
		rc = finish(mpi);
		*(is_leader ? &peer->to_recv : &peer->to_send) += 1;
		if (rc == 0)
			rc = finish(mpi);
	}
	return rc;
}

static int alltoall(struct mpi *mpi, const struct crew_job *job)
{
	uint64_t burst = mpi_burst(job->size);
	int rc = 0;

	for (uint64_t i = 0; i < job->count && rc == 0; i++) {
		for (unsigned rank = 0; rank < mpi->participants; rank++) {
			if (rank == mpi->member->rank)
				continue;
			mpi->peers[rank].to_send += burst;
			mpi->peers[rank].to_recv += burst;
		}
		rc = finish(mpi);
	}
	return rc;
}

/* A computation that nobody can leave out. */
static void compute(void)
{
	for (unsigned i = 0; i < MPI_STEPS; i++)
		__asm__ volatile("" : : "r"(i) : "memory");
}

/* Computes for some time without any call, and looks at memory. Then serves its peer, until the
 * message has come. */
static int await_computing(struct mpi *mpi, uint64_t pause_ns)
{
	struct mpi_peer *peer = &mpi->peers[0];
	bool is_over = false;
	int rc = 0;

	mpi->is_seen = false;
	peer->to_recv++;
	while (rc >= 0 && !is_over) {
		uint64_t end = tool_now_ns() + pause_ns;

		do {
			mpi_packet_look(mpi, 0);
			if (pause_ns > 0)
				compute();
		} while (pause_ns > 0 && tool_now_ns() < end);
		/* an MPI library that is called between computations looks at everything */
		mpi->passes += pause_ns > 0 ? MPI_PASSES - 1 : 0;
		rc = pass(mpi, &is_over);
	}
	return rc < 0 ? rc : 0;
}

/* The leader sends at a random time of the computation, after the previous message was taken. */
static int post_computing(struct mpi *mpi, uint64_t pause_ns, uint64_t taken)
{
	_Atomic uint64_t *word = &mpi->member->board->words[0].value;
	uint64_t until = 0;
	bool is_over;
	int rc = 0;

	while (rc >= 0 && (until == 0 || tool_now_ns() < until)) {
		rc = pass(mpi, &is_over);
		if (until == 0 && atomic_load(word) == taken)
			until = tool_now_ns() + (uint64_t)random() * pause_ns / RAND_MAX;
	}
	if (rc < 0)
		return rc;
	mpi->peers[1].to_send++;
	return finish(mpi);
}

static int computing(struct mpi *mpi, const struct crew_job *job)
{
	_Atomic uint64_t *word = &mpi->member->board->words[0].value;
	int rc = 0;

	mpi->seen = &mpi->member->board->stats;
	for (uint64_t i = 0; i < job->count && rc == 0; i++) {
		if (mpi->member->rank == 0) {
			rc = post_computing(mpi, job->pause_ns, i);
			continue;
		}
		rc = await_computing(mpi, job->pause_ns);
		atomic_store(word, i + 1);
	}
	/* the last one is taken before the board is used again */
	while (rc >= 0 && atomic_load(word) != job->count) {
		bool is_over;

		rc = pass(mpi, &is_over);
	}
	mpi->seen = NULL;
	return rc < 0 ? rc : 0;
}

/* --- a member --- */

static int do_job(struct mpi *mpi, const struct crew_job *job)
{
	static int (*const tests[MPI_TESTS])(struct mpi * mpi, const struct crew_job *job) = {
		[MPI_PINGPONG] = pingpong,
		[MPI_STREAM] = stream,
		[MPI_ALLTOALL] = alltoall,
		[MPI_COMPUTE] = computing,
	};
	struct crew_member *member = mpi->member;
	uint64_t since;
	int rc;

	mpi->participants = job->kind == MPI_ALLTOALL ? member->processes : 2;
	for (unsigned i = 0; i < member->processes; i++) {
		struct mpi_peer *peer = &mpi->peers[i];

		*peer = (struct mpi_peer){.link = peer->link,
					  .in_data = peer->in_data,
					  .out_data = peer->out_data,
					  .in_size = job->size,
					  .out_size = job->size};
	}
	if (member->rank == 0) {
		stats_reset(&member->board->stats);
		atomic_store(&member->board->words[0].value, 0);
	}
	crew_barrier(member);
	since = tool_now_ns();
	rc = member->rank < mpi->participants ? tests[job->kind](mpi, job) : 0;
	member->board->elapsed_ns[member->rank] = tool_now_ns() - since;
	member->board->wrong[member->rank] = mpi->wrong;
	return rc;
}

int mpi_member(struct crew_member *member)
{
	struct mpi *mpi = calloc(1, sizeof(*mpi));
	const struct crew_job *job;
	int rc;

	if (!mpi)
		return -1;
	mpi->member = member;
	mpi->setup = member->context;
	rc = mpi->setup->wire->open(mpi);
	while (rc == 0 && (job = crew_next(member)) != NULL) {
		rc = do_job(mpi, job);
		if (rc == 0)
			crew_done(member);
	}
	mpi->setup->wire->close(mpi);
	free(mpi);
	return rc;
}
