// SPDX-License-Identifier: BSD-2-Clause
/*
 * The packets and fragments of mpi in plain shared memory, without a library: a copy and a flag.
 * The receiver's buffer is in that memory, too, so a fragment is copied once.
 *
 * The memory has a place for each pair and direction: a box, the credits, and the buffer.
 */
#include "mpi.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static unsigned char *place(const struct mpi *mpi, unsigned from, unsigned to)
{
	uint64_t len = mpi_memory_len(1, mpi->setup->size_max);

	return mpi->setup->memory + ((uint64_t)to * mpi->member->processes + from) * len;
}

static _Atomic uint64_t *credits(const struct mpi *mpi, unsigned from, unsigned to)
{
	return (_Atomic uint64_t *)(place(mpi, from, to) + MPI_BOX_LEN);
}

static int memory_open(struct mpi *mpi)
{
	unsigned own = mpi->member->rank;

	for (unsigned i = 0; i < mpi->member->processes; i++) {
		struct mpi_peer *peer = &mpi->peers[i];

		peer->link.in = place(mpi, i, own);
		peer->link.out = place(mpi, own, i);
		peer->in_data = peer->link.in + MPI_BOX_LEN + CREW_LINE;
		peer->out_data = malloc(mpi->setup->size_max);
		if (!peer->out_data)
			return -1;
		memset(peer->out_data, 'm', mpi->setup->size_max);
	}
	return 0;
}

static void memory_close(struct mpi *mpi)
{
	for (unsigned i = 0; i < mpi->member->processes; i++)
		free(mpi->peers[i].out_data);
}

static int memory_progress(struct mpi *mpi)
{
	for (unsigned i = 0; i < mpi->member->processes; i++) {
		struct mpi_link *link = &mpi->peers[i].link;

		link->completed = link->posted;
		link->credited = atomic_load_explicit(credits(mpi, mpi->member->rank, i),
						      memory_order_acquire);
	}
	return 0;
}

static int memory_post(struct mpi *mpi, unsigned rank, uint64_t len)
{
	const struct mpi_link *link = &mpi->peers[rank].link;
	unsigned char *end = link->out + (link->posted % MPI_SLOTS + 1) * MPI_SLOT_LEN;

	(void)len;
	__atomic_store_n(end - 1, 1, __ATOMIC_RELEASE);
	return 0;
}

static int memory_credit(struct mpi *mpi, unsigned rank)
{
	struct mpi_link *link = &mpi->peers[rank].link;

	link->reported = link->taken;
	atomic_store_explicit(credits(mpi, rank, mpi->member->rank), link->taken,
			      memory_order_release);
	return 0;
}

/* The offset in the receiver's buffer. */
static int memory_expose(struct mpi *mpi, unsigned rank, unsigned index, unsigned char *data,
			 uint64_t len, struct mpi_grant *grant_out)
{
	(void)index;
	(void)len;
	*grant_out = (struct mpi_grant){
		.address = (uint64_t)(data - mpi->peers[rank].in_data),
	};
	return 0;
}

static int memory_hide(struct mpi *mpi, unsigned rank, unsigned index)
{
	(void)mpi;
	(void)rank;
	(void)index;
	return 0;
}

static int memory_put(struct mpi *mpi, unsigned rank, unsigned index, unsigned char *data,
		      uint64_t len, struct mpi_grant grant)
{
	unsigned char *target = place(mpi, mpi->member->rank, rank) + MPI_BOX_LEN + CREW_LINE;

	(void)index;
	memcpy(target + grant.address, data, len);
	mpi->peers[rank].placed++;
	return 0;
}

const struct mpi_wire mpi_memory = {
	.open = memory_open,
	.close = memory_close,
	.step = mpi_packet_step,
	.progress = memory_progress,
	.post = memory_post,
	.credit = memory_credit,
	.expose = memory_expose,
	.hide = memory_hide,
	.put = memory_put,
};
