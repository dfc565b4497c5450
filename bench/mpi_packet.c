// SPDX-License-Identifier: BSD-2-Clause
/*
 * Messages by packets and fragments, as an MPI library sends them with eager RDMA.
 *
 * A small message is a packet: the sender copies it into a slot, the receiver copies it out. A
 * large one is announced by a packet. The receiver registers each fragment of its buffer and grants
 * it by a packet; the sender registers its own, writes, and when the Write has completed
 * (COMPAT-03), frees its registration and sends a packet, after which the receiver frees its own.
 */
#include "mpi.h"

#include <errno.h>
#include <string.h>

#include "perf_clock.h"
#include "perf_pattern.h"

static uint64_t fragments_of(uint64_t size)
{
	return (size + MPI_FRAGMENT - 1) / MPI_FRAGMENT;
}

/* The offset of a fragment in its message, and its length. */
static uint64_t fragment_at(uint64_t size, uint64_t number, uint64_t *len_out)
{
	uint64_t offset = number % fragments_of(size) * MPI_FRAGMENT;

	*len_out = size - offset < MPI_FRAGMENT ? size - offset : MPI_FRAGMENT;
	return offset;
}

/* --- packets that are sent --- */

/* Makes a packet in the next slot, which must be free, and sends it. */
static int send_packet(struct mpi *mpi, unsigned rank, struct mpi_header header, const void *data,
		       uint64_t size)
{
	struct mpi_link *link = &mpi->peers[rank].link;
	unsigned char *end = link->out + (link->posted % MPI_SLOTS + 1) * MPI_SLOT_LEN;
	struct mpi_footer *footer = (struct mpi_footer *)(end - sizeof(*footer));
	uint64_t room = (size + 7) / 8 * 8;
	unsigned char *start = (unsigned char *)footer - room - sizeof(header);
	int rc;

	footer->len = (uint32_t)size;
	if (size > 0)
		memcpy(start + sizeof(header), data, size);
	header.posted = perf_clock_ticks();
	memcpy(start, &header, sizeof(header));
	rc = mpi->setup->wire->post(mpi, rank, (uint64_t)(end - start));
	link->posted++;
	return rc;
}

static int send_small(struct mpi *mpi, unsigned rank)
{
	struct mpi_peer *peer = &mpi->peers[rank];
	struct mpi_header header = {.kind = MPI_DATA};

	mpi_fill(mpi, rank, peer->sent);
	peer->sent++;
	return send_packet(mpi, rank, header, peer->out_data, peer->out_size);
}

/* A message is filled before it is announced, so then there is one at a time. */
static bool may_announce(const struct mpi *mpi, const struct mpi_peer *peer)
{
	return peer->announced < peer->to_send && mpi_has_slot(&peer->link) &&
	       (!mpi->setup->is_checked || peer->announced == peer->sent);
}

static int announce(struct mpi *mpi, unsigned rank)
{
	struct mpi_peer *peer = &mpi->peers[rank];
	struct mpi_header header = {.kind = MPI_READY};

	mpi_fill(mpi, rank, peer->announced);
	peer->announced++;
	return send_packet(mpi, rank, header, NULL, 0);
}

static int put(struct mpi *mpi, unsigned rank)
{
	struct mpi_peer *peer = &mpi->peers[rank];
	unsigned index = (unsigned)(peer->written % MPI_DEPTH);
	uint64_t len;
	uint64_t offset = fragment_at(peer->out_size, peer->written, &len);

	peer->written++;
	return mpi->setup->wire->put(mpi, rank, index, peer->out_data + offset, len,
				     peer->grant[index]);
}

static int finish(struct mpi *mpi, unsigned rank)
{
	struct mpi_peer *peer = &mpi->peers[rank];
	struct mpi_header header = {.kind = MPI_FIN};

	peer->finished++;
	peer->sent = peer->finished / fragments_of(peer->out_size);
	return send_packet(mpi, rank, header, NULL, 0);
}

/* 1: something was sent. */
static int step_send(struct mpi *mpi, unsigned rank)
{
	struct mpi_peer *peer = &mpi->peers[rank];
	int moved = 0;
	int rc = 0;

	if (peer->out_size <= MPI_EAGER_MAX) {
		for (; rc == 0 && peer->sent < peer->to_send && mpi_has_slot(&peer->link);
		     moved = 1)
			rc = send_small(mpi, rank);
		return rc == 0 ? moved : rc;
	}
	for (; rc == 0 && may_announce(mpi, peer); moved = 1)
		rc = announce(mpi, rank);
	for (;
	     rc == 0 && peer->written < peer->grants && peer->written - peer->finished < MPI_DEPTH;
	     moved = 1)
		rc = put(mpi, rank);
	for (; rc == 0 && peer->finished < peer->placed && mpi_has_slot(&peer->link); moved = 1)
		rc = finish(mpi, rank);
	return rc == 0 ? moved : rc;
}

/* --- packets that arrive --- */

/* A thread of the library may have written these bytes. A sanitizer that follows threads would
 * intercept memcpy. */
PERF_NO_TSAN static void copy_in(unsigned char *to, const unsigned char *from, uint64_t len)
{
#if defined(__SANITIZE_THREAD__)
	for (uint64_t i = 0; i < len; i++)
		*(volatile unsigned char *)(to + i) = *(const volatile unsigned char *)(from + i);
#else
	memcpy(to, from, len);
#endif
}

PERF_NO_TSAN static void clear_flag(struct mpi_footer *footer)
{
	*(volatile unsigned char *)&footer->flag = 0;
}

static struct mpi_footer *next_footer(const struct mpi_link *link)
{
	unsigned char *end = link->in + (link->taken % MPI_SLOTS + 1) * MPI_SLOT_LEN;

	return (struct mpi_footer *)(end - sizeof(struct mpi_footer));
}

PERF_NO_TSAN static const unsigned char *
read_packet(const struct mpi_footer *footer, struct mpi_header *header_out, uint64_t *len_out)
{
	const unsigned char *data;

	*len_out = *(const volatile uint32_t *)&footer->len;
	data = (const unsigned char *)footer - (*len_out + 7) / 8 * 8;
	copy_in((unsigned char *)header_out, data - sizeof(*header_out), sizeof(*header_out));
	return data;
}

static void note_seen(struct mpi *mpi, const struct mpi_header *header)
{
	uint64_t now = perf_clock_ticks();

	if (mpi->seen && !mpi->is_seen && header->kind == MPI_DATA && now > header->posted)
		stats_add(mpi->seen, now - header->posted);
	mpi->is_seen = true;
}

void mpi_packet_look(struct mpi *mpi, unsigned rank)
{
	struct mpi_footer *footer = next_footer(&mpi->peers[rank].link);
	struct mpi_header header;
	uint64_t len;

	if (mpi->is_seen || !perf_last_is(&footer->flag, 1))
		return;
	read_packet(footer, &header, &len);
	note_seen(mpi, &header);
}

static int take_fin(struct mpi *mpi, unsigned rank)
{
	struct mpi_peer *peer = &mpi->peers[rank];
	int rc = mpi->setup->wire->hide(mpi, rank, (unsigned)(peer->arrived % MPI_DEPTH));

	peer->arrived++;
	if (peer->arrived % fragments_of(peer->in_size) == 0)
		mpi_verify(mpi, rank, peer->received++);
	return rc;
}

static int take_packet(struct mpi *mpi, unsigned rank, struct mpi_footer *footer)
{
	struct mpi_peer *peer = &mpi->peers[rank];
	struct mpi_header header;
	uint64_t len;
	const unsigned char *data = read_packet(footer, &header, &len);
	struct mpi_grant *grant = &peer->grant[peer->grants % MPI_DEPTH];

	note_seen(mpi, &header);
	switch ((enum mpi_kind)header.kind) {
	case MPI_DATA:
		copy_in(peer->in_data, data, len);
		mpi_verify(mpi, rank, peer->received++);
		return 0;
	case MPI_READY:
		peer->ready++;
		return 0;
	case MPI_GRANT:
		*grant = (struct mpi_grant){.address = header.address, .key = header.key};
		peer->grants++;
		return 0;
	case MPI_FIN:
		return take_fin(mpi, rank);
	}
	return -EPROTO;
}

static int grant(struct mpi *mpi, unsigned rank)
{
	struct mpi_peer *peer = &mpi->peers[rank];
	unsigned index = (unsigned)(peer->granted % MPI_DEPTH);
	struct mpi_header header = {.kind = MPI_GRANT};
	struct mpi_grant granted;
	uint64_t len;
	uint64_t offset = fragment_at(peer->in_size, peer->granted, &len);
	int rc = mpi->setup->wire->expose(mpi, rank, index, peer->in_data + offset, len, &granted);

	if (rc != 0)
		return rc;
	peer->granted++;
	header.address = granted.address;
	header.key = granted.key;
	return send_packet(mpi, rank, header, NULL, 0);
}

static bool may_grant(const struct mpi_peer *peer)
{
	return peer->granted < peer->ready * fragments_of(peer->in_size) &&
	       peer->granted - peer->arrived < MPI_DEPTH && mpi_has_slot(&peer->link);
}

/* 1: something has arrived. */
static int step_recv(struct mpi *mpi, unsigned rank)
{
	struct mpi_peer *peer = &mpi->peers[rank];
	struct mpi_link *link = &peer->link;
	struct mpi_footer *footer;
	int moved = 0;
	int rc = 0;

	while (rc == 0 && perf_last_is(&(footer = next_footer(link))->flag, 1)) {
		rc = take_packet(mpi, rank, footer);
		clear_flag(footer);
		link->taken++;
		moved = 1;
	}
	if (rc == 0 && link->taken - link->reported >= MPI_SLOTS / 2)
		rc = mpi->setup->wire->credit(mpi, rank);
	for (; rc == 0 && may_grant(peer); moved = 1)
		rc = grant(mpi, rank);
	return rc == 0 ? moved : rc;
}

int mpi_packet_step(struct mpi *mpi, unsigned rank)
{
	int received = step_recv(mpi, rank);
	int sent = received < 0 ? received : step_send(mpi, rank);

	return sent < 0 ? sent : sent | received;
}
