// SPDX-License-Identifier: BSD-2-Clause
/*
 * For tests of the TCP engine against a program that uses the kernel's siw: that program as a child
 * process, and connections to it on which both sides exchange short messages. A failure ends the
 * test.
 */
#ifndef TESTS_VM_FOREIGN_H
#define TESTS_VM_FOREIGN_H

#include "conn_util.h"
#include "dto_util.h"

#define FOREIGN_ADDRESS "10.0.2.15"
#define FOREIGN_MESSAGE 64u /* the longest message */

struct foreign {
	struct dt_ia ia;
	struct dt_listener listener; /* on a TCP port */
	pid_t child;		     /* 0: none */
};

struct foreign_link {
	struct dt_ep ep;
	struct dt_buf messages;
};

/* The value of write_proof is for a peer whose memory may be read ("byte"), or not ("off"). */
void foreign_open(struct foreign *foreign, const char *write_proof);
void foreign_close(struct foreign *foreign); /* ends the child, too */

/* Starts a program; the list of its arguments ends with NULL. */
void foreign_start(struct foreign *foreign, const char *const *arguments);
/* It must end with status 0. */
void foreign_join(struct foreign *foreign);
/* A port for a listener of the child, as text. */
void foreign_choose_port(char text[static 8]);

/* An unconnected endpoint, and memory for messages. */
void foreign_prepare(struct foreign *foreign, struct foreign_link *link);
void foreign_post_receives(struct foreign_link *link);
/* Takes the next request of the child; messages may follow. */
void foreign_accept(struct foreign *foreign, struct foreign_link *link);
/* Connects to the child's listener as soon as there is one. */
void foreign_connect(struct dt_ep *ep, const char *port);

/* The next message; returns its length. */
size_t foreign_take(struct foreign_link *link, uint8_t message[static FOREIGN_MESSAGE]);
/* The next message must have that length. */
void foreign_take_all(struct foreign_link *link, uint8_t *message, size_t size);
void foreign_give(struct foreign_link *link, const void *message, size_t size);

#endif
