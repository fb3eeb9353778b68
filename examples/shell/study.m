% Twenty duels from Octave: `octave-cli study.m` beside askwise.toml.  Needs Octave 7 or later.
1;

function reply = askwise(program, varargin)
  fputs(program.requests, [jsonencode(struct(varargin{:})), "\n"]);
  fflush(program.requests);
  line = "";
  while isempty(line) || line(end) != "\n"  % it does not wait for a whole line
    part = fgets(program.replies);
    if ischar(part)
      line = [line, part];
    elseif waitpid(program.pid, WNOHANG) != 0
      error("askwise has ended; run `askwise check` to see why");
    else
      fclear(program.replies);
      pause(0.01);
    end
  end
  reply = jsondecode(line);
  if isfield(reply, "error")
    error(reply.error);
  end
end

[program.requests, program.replies, program.pid] = popen2("askwise", {"shell", "--json"});
for number = 1:20
  question = askwise(program, "do", "ask");
  gains = [question.options.gain];
  [~, better] = min(abs(gains - 25));  % ask a person here; this one likes 25 dB
  askwise(program, "do", "tell", "question", question.id, "answer", better - 1);
end
printf("Recommended gain: %g\n", askwise(program, "do", "best").params.gain);
fclose(program.requests);
