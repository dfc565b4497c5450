// SPDX-License-Identifier: BSD-2-Clause
/*
 * Adds random posts to a sequence. The functions return false, and add nothing, where the result
 * of the post would depend on time, or there is no room for it.
 */
#ifndef DIFFERENTIAL_POSTS_H
#define DIFFERENTIAL_POSTS_H

#include "model.h"

uint32_t pick_len(struct model *model, uint32_t limit);
DAT_COMPLETION_FLAGS pick_flags(struct model *model, int side);
void pick_segments(struct model *model, struct step *step, uint32_t len);

bool post_send(struct model *model, int side, int ep, uint32_t limit);
bool post_recv(struct model *model, int side, int ep);
bool post_write(struct model *model, int side, int ep);
bool post_read(struct model *model, int side, int ep);
bool post_fenced(struct model *model, int side, int ep); /* a Read, and what uses its result */
bool post_bind(struct model *model, int side, int ep);
bool post_request(struct model *model, int side, int ep); /* any of these */
/* Requests that do not wait for a Receive. */
bool post_willing(struct model *model, int side, int ep);
/* One that is refused: for a mistake of its own, or for the given reason. */
void post_mistake(struct model *model, int side, int ep);
void post_refused(struct model *model, int side, int ep, enum mistake mistake, enum op op);
/* A request that breaks the connection, and what is posted behind it. */
void post_bad(struct model *model, int side, int ep);

#endif
