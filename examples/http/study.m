% Twenty duels from Octave over HTTP: `octave-cli study.m LINK`, with a participant's link.
% Needs Octave 7 or later and curl, since webwrite cannot send JSON.
1;

function reply = askwise(link, path, sent)
  parts = strsplit(link, "/p/");
  headers = written(["Authorization: Bearer " parts{2} "\nContent-Type: application/json\n"]);
  body = written(jsonencode(sent));
  % every request may be sent again: the same answer twice counts once
  command = "curl --silent --show-error --retry 10 --retry-connrefused --header @%s --data @%s %s/api/v1%s";
  [failed, text] = system(sprintf(command, headers, body, parts{1}, path));
  delete(headers);
  delete(body);
  if failed
    error("the server does not answer: %s", text);
  end
  reply = jsondecode(text);
  if isfield(reply, "error")
    error(reply.error.message);
  end
end

function file = written(text)  % in a file, since other users can see the words of a command
  [out, file] = mkstemp(fullfile(tempdir(), "askwise-XXXXXX"));
  fputs(out, text);
  fclose(out);
end

link = argv(){end};
study = "/studies/hall";  % its name is shown on the experimenter's page
question = askwise(link, [study "/ask"], struct());
for number = 1:20
  gains = cellfun(@(option) option.gain, num2cell(question.options));
  [~, better] = min(abs(gains - 25));  % ask a person here; this one likes 25 dB
  told = askwise(link, [study "/tell"], struct("question", question.id, "answer", better - 1, "next", true));
  question = told.next;
end
printf("Answers: %d\n", told.answers);
