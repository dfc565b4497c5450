// SPDX-License-Identifier: BSD-2-Clause
/* The messages of mpi over TCP sockets that both sides poll: a header, then the data. */
#include "mpi.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

static int sockets_open(struct mpi *mpi)
{
	for (unsigned i = 0; i < mpi->member->processes; i++) {
		struct mpi_peer *peer = &mpi->peers[i];

		peer->in_data = malloc(mpi->setup->size_max);
		peer->out_data = malloc(mpi->setup->size_max);
		if (!peer->in_data || !peer->out_data)
			return -ENOMEM;
		memset(peer->in_data, 'm', mpi->setup->size_max);
		memset(peer->out_data, 'm', mpi->setup->size_max);
	}
	return 0;
}

static void sockets_close(struct mpi *mpi)
{
	for (unsigned i = 0; i < mpi->member->processes; i++) {
		free(mpi->peers[i].in_data);
		free(mpi->peers[i].out_data);
	}
}

/* What is left of a message, its header included, of which `done` bytes have moved. */
static unsigned rest_of(uint64_t *header, unsigned char *data, uint64_t size, uint64_t done,
			struct iovec parts[2])
{
	if (done < sizeof(*header)) {
		parts[0] = (struct iovec){.iov_base = (unsigned char *)header + done,
					  .iov_len = sizeof(*header) - done};
		parts[1] = (struct iovec){.iov_base = data, .iov_len = size};
		return 2;
	}
	done -= sizeof(*header);
	parts[0] = (struct iovec){.iov_base = data + done, .iov_len = size - done};
	return 1;
}

/* Bytes that have moved; 0: not now. */
static ssize_t moved_bytes(ssize_t result)
{
	if (result > 0)
		return result;
	if (result < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	return result == 0 ? -ECONNRESET : -errno;
}

static int send_some(struct mpi *mpi, unsigned rank)
{
	struct mpi_peer *peer = &mpi->peers[rank];
	uint64_t header = peer->out_size;
	struct iovec parts[2];
	struct msghdr message = {.msg_iov = parts};
	ssize_t moved;

	if (peer->sent == peer->to_send)
		return 0;
	if (peer->out_done == 0)
		mpi_fill(mpi, rank, peer->sent);
	message.msg_iovlen =
		rest_of(&header, peer->out_data, peer->out_size, peer->out_done, parts);
	moved = moved_bytes(
		sendmsg(mpi->setup->sockets[mpi->member->rank][rank], &message, MSG_NOSIGNAL));
	if (moved <= 0)
		return (int)moved;
	peer->out_done += (uint64_t)moved;
	if (peer->out_done == sizeof(header) + peer->out_size) {
		peer->out_done = 0;
		peer->sent++;
	}
	return 1;
}

static int receive_some(struct mpi *mpi, unsigned rank)
{
	struct mpi_peer *peer = &mpi->peers[rank];
	struct iovec parts[2];
	struct msghdr message = {.msg_iov = parts};
	ssize_t moved;

	if (peer->received == peer->to_recv)
		return 0;
	message.msg_iovlen =
		rest_of(&peer->in_header, peer->in_data, peer->in_size, peer->in_done, parts);
	moved = moved_bytes(recvmsg(mpi->setup->sockets[mpi->member->rank][rank], &message, 0));
	if (moved <= 0)
		return (int)moved;
	peer->in_done += (uint64_t)moved;
	if (peer->in_done == sizeof(peer->in_header) + peer->in_size) {
		peer->in_done = 0;
		mpi_verify(mpi, rank, peer->received++);
	}
	return 1;
}

static int sockets_step(struct mpi *mpi, unsigned rank)
{
	int received = receive_some(mpi, rank);
	int sent = received < 0 ? received : send_some(mpi, rank);

	return sent < 0 ? sent : sent | received;
}

const struct mpi_wire mpi_sockets = {
	.open = sockets_open,
	.close = sockets_close,
	.step = sockets_step,
};
